"""`kdissect probe`: a report on a broker, or the exchanges of the probe as `show` prints them."""

from collections.abc import Iterable, Iterator

from dissector.cli.errors import NEGATIVE, print_error
from dissector.cli.formats import ProbeFormat
from dissector.cli.render.pages import DIM, NAME, NOTE, TITLE, Line, print_lines, table, title, wrapped, write_out
from dissector.cli.render.trees import tree_lines
from dissector.core.addresses import BrokerAddress
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from dissector.probe.connection import BrokerConnection, ProbeError, probed_address
from dissector.probe.dialogue import ProbeResult, probe_broker
from dissector.probe.offers import compare, guess_release
from dissector.protocol.wire import EncodeError


def probe(text: str, form: ProbeFormat, timeout: float, client_id: str, *, topics: bool) -> int:
    """Probe a broker and print; return the exit code: 1 if the server is not Kafka, 2 if there is none."""
    result, problem = None, None
    exchanges: list[Exchange] = []
    try:
        address = probed_address(text)
        with BrokerConnection(address, client_id, timeout) as connection:
            exchanges = connection.exchanges
            result = probe_broker(connection, topics=topics)
            problem = result.trouble
    except ProbeError as error:
        problem = error
    except EncodeError as error:
        return print_error(f"--client-id: {error.message}")
    if form is not ProbeFormat.TEXT:
        _print_exchanges(exchanges, form)
    elif result is not None:
        print_lines(_report(result, text))
    if problem is None:
        return 0
    code = print_error(str(problem))
    return NEGATIVE if problem.negative else code


def _print_exchanges(exchanges: Iterable[Exchange], form: ProbeFormat) -> None:
    start = next((exchange.row.time_ns for exchange in exchanges), 0)
    if form is ProbeFormat.JSON:
        write_out(json_line(exchange) for exchange in exchanges)
        return
    print_lines([(line, "")] for exchange in exchanges for line in tree_lines(exchange, start))


def _report(result: ProbeResult, address: str) -> Iterator[Line]:
    yield [(address, TITLE)]
    yield [(f"  ApiVersions   v{result.version}", "")]
    if result.fallback:
        yield [(f"                {result.fallback}", NOTE)]
    yield [("  release       ", ""), *_release(result)]
    if result.source:
        yield [(f"  cluster id    {result.cluster_id or '(unknown)'}", ""), (f"  ({result.source})", DIM)]
        yield [(f"  controller    {'(unknown)' if result.controller_id is None else result.controller_id}", "")]
        yield from _nodes(result)
    if result.topics:
        yield from title(f"Topics ({len(result.topics):,})")
        rows = [(topic.name, f"{topic.partitions:,}", topic.error) for topic in result.topics]
        yield from table(("topic", "partitions", ""), rows, (NAME, "", NOTE))
    if result.features:
        yield from title("Features")
        features = [
            (
                each.name,
                "-" if each.supported is None else str(each.supported),
                "" if each.finalized is None else str(each.finalized),
            )
            for each in result.features
        ]
        yield from table(("feature", "supported", "finalized"), features, (NAME, "", ""))
    yield from _offers(result)


def _offers(result: ProbeResult) -> Iterator[Line]:
    """List the APIs that the broker advertises, then the others by reason."""
    lines = compare(result.offer)
    rows = [
        (str(line.key), line.name, str(line.broker), "-" if line.ours is None else str(line.ours), line.note)
        for line in lines
        if line.broker is not None
    ]
    yield from title("Versions")
    yield from table(("key", "API", "broker", "ours", "note"), rows, (DIM, NAME, "", "", NOTE))
    absent = [line for line in lines if line.broker is None]
    for note in dict.fromkeys(line.note for line in absent):
        yield from title(f"{note[0].upper()}{note[1:]}")
        yield from wrapped(", ".join(line.name for line in absent if line.note == note), 2)


def _release(result: ProbeResult) -> Line:
    """Describe the guessed release: only "nearest" if fewer than 9 of 10 APIs agree."""
    found = guess_release(result.offer)
    names = f"Kafka {' or '.join(found.releases)}"
    words = f"  ({found.same} of {found.of} APIs have its newest version)"
    return [(names if 10 * found.same >= 9 * found.of else f"none that is known; nearest {names}", NAME), (words, DIM)]


def _nodes(result: ProbeResult) -> Iterator[Line]:
    yield from title("Nodes")
    rows = [
        (str(node.id), str(BrokerAddress(node.host, node.port)), node.rack or "",
         "controller" if node.id == result.controller_id else "")
        for node in result.nodes
    ]  # fmt: skip
    yield from table(("id", "address", "rack", ""), rows, (NAME, "", "", NOTE))
