"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Sequence, Set

from dissector.capture_session import Capture
from dissector.cli.cluster import THIS_MACHINE, Cluster
from dissector.cli.filtering import nothing_fits, wanted
from dissector.cli.follow import follow
from dissector.cli.formats import Format
from dissector.cli.outcome import BAD_INPUT, NEGATIVE, complain
from dissector.cli.printing import Printing
from dissector.cli.progress import read_with_progress
from dissector.cli.tables import are_tables
from dissector.cli.tables import show as show_tables
from dissector.cli.whole_file import WholeFile
from dissector.cli.workers import WorkerError
from dissector.core.garbage_collection import infrequent_collection
from dissector.core.text import counted


def show(
    files: Sequence[str],
    form: Format,
    limit: int | None,
    asked: tuple[int, int] | None = None,
    fields: str | None = None,
    filter: str | None = None,
    *,
    ports: Set[int] = frozenset(),
    show_secrets: bool = False,
    on: Cluster = THIS_MACHINE,
) -> int:
    """Print; the exit code: 0, or 1 where there is no Kafka in it, or none that fits the filter."""
    printing, fitting = Printing.of(form, fields), wanted(filter)
    if are_tables(files, on, (asked, ports, show_secrets)):
        return show_tables(files[0], on, printing, limit, fitting)
    with infrequent_collection(), Capture(files, response_to=asked, ports=ports, show_secrets=show_secrets) as capture:
        try:
            if capture.pipeline.grows:
                printed = bool(follow(capture, printing, sys.stdout.buffer, limit, wanted=fitting))
            else:
                read_with_progress(capture)
                printed = WholeFile(capture, printing, fitting).print(limit)
        except WorkerError as error:
            complain(str(error))
            return BAD_INPUT
        for problem in capture.problems:
            complain(problem.message)
        if not printed:
            complain(nothing_fits(fitting, len(capture)) if fitting and len(capture) else nothing_found(capture))
            return NEGATIVE
    return 0


def nothing_found(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    connections = counted(len(capture.connections), "TCP connection")
    seen = f"{counted(capture.packets, 'packet')}, {connections}{spoken(capture)}"
    return f"{names}: no Kafka in it ({seen})"


def spoken(capture: Capture) -> str:
    """What the connections of a capture speak: ``: TLS 12, unknown 3``."""
    counts = [f"{name} {count:,}" for name, count in capture.connections.protocols.items()]
    return f": {', '.join(counts)}" if counts else ""
