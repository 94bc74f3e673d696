"""`kdissect probe`: a broker's answers as a report, or the probe's own bytes as `show` prints exchanges."""

from collections.abc import Iterable, Iterator
from textwrap import wrap

from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.formats import ProbeFormat
from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, Line, print_lines, table, title, write_out
from dissector.cli.render.trees import tree_lines
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from dissector.probe.connection import Address, BrokerConnection, ProbeError
from dissector.probe.dialogue import ProbeResult, probe_broker
from dissector.probe.offers import compare, guess_release
from dissector.protocol.wire.writing import EncodeError


def probe(text: str, form: ProbeFormat, timeout: float, client_id: str, *, topics: bool) -> int:
    """Ask and print; the exit code: 1 where something answers that is not Kafka, 2 where nothing does."""
    answers, trouble = None, None
    exchanges: list[Exchange] = []
    try:
        address = Address.parse(text)
        with BrokerConnection(address, client_id, timeout) as connection:
            exchanges = connection.exchanges
            answers = probe_broker(connection, topics=topics)
            trouble = answers.trouble
    except ProbeError as error:
        trouble = error
    except EncodeError as error:
        return print_error(f"--client-id: {error.message}")
    if form is not ProbeFormat.TEXT:
        _print_exchanges(exchanges, form)
    elif answers is not None:
        print_lines(_report(answers, text))
    if trouble is None:
        return 0
    code = print_error(str(trouble))
    return NEGATIVE if trouble.negative else code


def _print_exchanges(exchanges: Iterable[Exchange], form: ProbeFormat) -> None:
    start = next((exchange.row.time_ns for exchange in exchanges), 0)
    if form is ProbeFormat.JSON:
        write_out(json_line(exchange) for exchange in exchanges)
        return
    print_lines([(line, "")] for exchange in exchanges for line in tree_lines(exchange, start))


def _report(answers: ProbeResult, where: str) -> Iterator[Line]:
    yield [(where, TITLE)]
    yield [(f"  ApiVersions   v{answers.version}", "")]
    if answers.fallback:
        yield [(f"                {answers.fallback}", NOTE)]
    yield [("  release       ", ""), *_release(answers)]
    if answers.source:
        yield [(f"  cluster id    {answers.cluster_id or '(unknown)'}", ""), (f"  ({answers.source})", DIM)]
        yield [(f"  controller    {'(unknown)' if answers.controller_id is None else answers.controller_id}", "")]
        yield from _nodes(answers)
    if answers.topics:
        yield from title(f"Topics ({len(answers.topics):,})")
        rows = [(topic.name, f"{topic.partitions:,}", topic.error) for topic in answers.topics]
        yield from table(("topic", "partitions", ""), rows, (NAME, "", NOTE))
    if answers.features:
        yield from title("Features")
        features = [
            (
                each.name,
                "-" if each.supported is None else str(each.supported),
                "" if each.finalized is None else str(each.finalized),
            )
            for each in answers.features
        ]
        yield from table(("feature", "supported", "finalized"), features, (NAME, "", ""))
    yield from _offers(answers)


def _offers(answers: ProbeResult) -> Iterator[Line]:
    """A row for each API that the broker offers; those that it does not by their reasons."""
    lines = compare(answers.offer)
    rows = [
        (str(line.key), line.name, str(line.broker), "-" if line.ours is None else str(line.ours), line.note)
        for line in lines
        if line.broker is not None
    ]
    yield from title("Versions")
    yield from table(("key", "API", "broker", "ours", "note"), rows, (DIM, NAME, "", "", NOTE))
    absent = [line for line in lines if line.broker is None]
    for note in dict.fromkeys(line.note for line in absent):
        words = ", ".join(line.name for line in absent if line.note == note)
        yield from title(f"{note[0].upper()}{note[1:]}")
        yield from ([(f"  {line}", "")] for line in wrap(words, 96, break_on_hyphens=False))


def _release(answers: ProbeResult) -> Line:
    """The guess; 9 of 10 APIs must agree for more than "nearest"."""
    found = guess_release(answers.offer)
    names = f"Kafka {' or '.join(found.releases)}"
    words = f"  ({found.same} of {found.of} APIs have its newest version)"
    return [(names if 10 * found.same >= 9 * found.of else f"none that is known; nearest {names}", NAME), (words, DIM)]


def _nodes(answers: ProbeResult) -> Iterator[Line]:
    yield from title("Nodes")
    rows = [
        (str(node.id), str(Address(node.host, node.port)), node.rack or "",
         "controller" if node.id == answers.controller_id else "")
        for node in answers.nodes
    ]  # fmt: skip
    yield from table(("id", "address", "rack", ""), rows, (NAME, "", "", NOTE))
