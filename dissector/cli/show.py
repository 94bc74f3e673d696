"""`kdissect show`: rows, trees or JSON objects on stdout, one an exchange; what is wrong with a file on stderr."""

import sys
from collections.abc import Sequence, Set

from dissector.capture_session import Capture
from dissector.cli.cluster import THIS_MACHINE, Cluster
from dissector.cli.exit_codes import BAD_INPUT, NEGATIVE, print_error
from dissector.cli.filter_option import no_match_message, parse_filter
from dissector.cli.follow import follow
from dissector.cli.formats import Format
from dissector.cli.render.printing import RowRenderer
from dissector.cli.render.progress import read_with_progress
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
    printing, fitting = RowRenderer.of(form, fields), parse_filter(filter)
    if are_tables(files, on, (asked, ports, show_secrets)):
        return show_tables(files[0], on, printing, limit, fitting)
    with infrequent_collection(), Capture(files, response_to=asked, ports=ports, show_secrets=show_secrets) as capture:
        try:
            if capture.pipeline.grows:
                printed = bool(follow(capture, printing, sys.stdout.buffer, limit, row_filter=fitting))
            else:
                read_with_progress(capture)
                printed = WholeFile(capture, printing, fitting).print(limit)
        except WorkerError as error:
            print_error(str(error))
            return BAD_INPUT
        for problem in capture.problems:
            print_error(problem.message)
        if not printed:
            print_error(
                no_match_message(fitting, len(capture)) if fitting and len(capture) else no_kafka_message(capture)
            )
            return NEGATIVE
    return 0


def no_kafka_message(capture: Capture) -> str:
    """Why a capture shows no row."""
    names = ", ".join(capture.names)
    connections = counted(len(capture.connections), "TCP connection")
    seen = f"{counted(capture.packets, 'packet')}, {connections}{protocol_counts(capture)}"
    return f"{names}: no Kafka in it ({seen})"


def protocol_counts(capture: Capture) -> str:
    """What the connections of a capture speak: ``: TLS 12, unknown 3``."""
    counts = [f"{name} {count:,}" for name, count in capture.connections.protocols.items()]
    return f": {', '.join(counts)}" if counts else ""
