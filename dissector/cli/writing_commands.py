"""`kdissect export`, `ingest` and `samples`: what makes files and tables."""

from dataclasses import replace
from typing import Annotated

import typer

from dissector.cli.command import CaptureFiles, RowFilter, command, examples
from dissector.cli.options import CaptureOptions, Cluster
from dissector.export.formats import ExportFormat

writing_commands = typer.Typer()


@command(
    writing_commands,
    "export",
    epilog=examples(
        {
            "failed exchanges, redacted": "kdissect export samples/orders.pcapng -Y error -w errors.pcapng --redact",
            "a test that replays an exchange": "kdissect export samples/orders.pcapng --rows 17 -w test_replay.py",
        }
    ),
)
def export(
    files: CaptureFiles,
    *,
    out: Annotated[str, typer.Option("-w", metavar="OUT", help="The file to write; - is standard output.")],
    rows: Annotated[
        str | None, typer.Option(metavar="N,N-M", help="Rows by number, as in show; by default all.")
    ] = None,
    filter: RowFilter = None,
    form: Annotated[
        ExportFormat | None,
        typer.Option("--format", "-f", help="File format; by default from the suffix of OUT: .pcapng .txt .py …"),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace record contents, credentials, names and addresses.")
    ] = False,
    no_secrets: Annotated[
        bool, typer.Option("--no-secrets", help="Leave the TLS secrets of decrypted connections out of a capture.")
    ] = False,
    decrypted: Annotated[
        bool, typer.Option("--decrypted", help="Write decrypted exchanges as plain TCP, in place of their packets.")
    ] = False,
    options: CaptureOptions,
) -> int:
    """Write exchanges to a file.

    It has their packets, a hex transcript, JSON, a sequence diagram (Mermaid, SVG), a pytest file that replays them, or
    the command that shows them.

    Secrets are masked, except in a capture without --redact. Redaction keeps sizes and structure, and replaces a name
    by the same other name everywhere.
    """
    from dissector.cli.export import export as run

    return run(
        files, out, form, rows, filter, redact=redact, secrets=not no_secrets, decrypted=decrypted, options=options
    )


@command(
    writing_commands,
    "ingest",
    epilog=examples(
        {
            "query many captures at once": "kdissect ingest samples/*.pcapng --out tables",
            "fail if a request failed": "kdissect ingest samples/orders.pcapng --out tables --fail-on error",
        }
    ),
)
def ingest(
    captures: Annotated[list[str], typer.Argument(metavar="CAPTURES…", help="Captures, or folders of them.")],
    *,
    out: Annotated[str, typer.Option(metavar="DIR", help="Folder of the tables; an existing one is extended.")],
    cluster: Annotated[Cluster, "master", "remote", "conf"],
    frames: Annotated[bool, typer.Option("--frames", help="Also keep the bytes of requests and responses.")] = False,
    no_bodies: Annotated[
        bool,
        typer.Option("--no-bodies", help="Leave out messages as JSON: the tables take about half the space."),
    ] = False,
    hashed: Annotated[
        bool, typer.Option("--hash-records", help="Keep sizes and hashes of keys and values, not their bytes.")
    ] = False,
    options: Annotated[CaptureOptions, "port", "decode_as", "show_secrets", "keylog"],
    log: Annotated[Cluster, "verbose"],
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Keep reading a folder's files as tcpdump or dumpcap close them, until Ctrl+C."),
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="With --follow, write everything and end after this long without new packets."
        ),
    ] = None,
    skip_known: Annotated[
        bool, typer.Option("--skip-known", help="Leave out captures that are parts of others in the tables.")
    ] = False,
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="FILTER", help="Exit with 1 if a row that was written matches: 'error'."),
    ] = None,
    notify: Annotated[
        str | None, typer.Option(metavar="URL", help="Post counts as JSON at the end, or as files of --follow end.")
    ] = None,
) -> int:
    """Convert captures to Delta Lake tables. Without Spark, up to 1 GiB at a time. A capture whose packets are in the
    tables is left out, whatever its format. At the end, it names connections that other captures in the tables continue
    or also have, and the command that joins them."""
    from dissector.cli.ingest import ingest as run
    from dissector.detection.decode_as import of_ports

    return run(
        captures, out, replace(cluster, verbose=log.verbose), frames=frames, bodies=not no_bodies,
        hashed=hashed, show_secrets=options.show_secrets, decode_as=[*of_ports(options.ports), *options.choices],
        follow=follow, idle=idle, key_logs=options.key_logs, skip_known=skip_known,
        fail_on=fail_on, notify=notify,
    )  # fmt: skip


@command(
    writing_commands,
    "samples",
    epilog=examples({"copy them": "kdissect samples", "open one": "kdissect samples/orders.pcapng"}),
)
def samples(
    folder: Annotated[
        str, typer.Argument(metavar="[FOLDER]", help="Folder to copy to; created if it does not exist.")
    ] = ("samples"),
) -> int:
    """Copy sample captures into a folder, to try commands on."""
    from dissector.cli.samples import copy_samples

    return copy_samples(folder)
