"""What holds of every bundled capture."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.exchange.to_json import json_line
from dissector.protocol.message_layout import MessageLayout
from tests.conftest import CAPTURES, PCAPS, VARIED
from tests.protocol.trees import assert_tiled, same, values_of

pytestmark = pytest.mark.slow

LARGEST = 300_000


@pytest.fixture(scope="module")
def decoded(every_capture: Path) -> Iterator[tuple[Capture, list[Exchange]]]:
    """Each bundled capture in turn, with its exchanges: read, and each message traced, once for all tests."""
    with Capture([str(every_capture)]) as capture:
        yield capture, list(capture.exchanges())


MOST_OF_A_LAYOUT = 8


@pytest.fixture
def messages(decoded: tuple[Capture, list[Exchange]]) -> list[ExchangeMessage]:
    """The messages of a capture; of those with one layout, such as a client's hundred Fetch requests, the first ones,
    the largest and the smallest."""
    by_layout: dict[MessageLayout, list[ExchangeMessage]] = defaultdict(list)
    for each in decoded[1]:
        for message in (each.request, each.response):
            if message is not None:
                by_layout[message.layout].append(message)
    return [message for some in by_layout.values() for message in _varied(some)]


def _varied(some: list[ExchangeMessage]) -> list[ExchangeMessage]:
    if len(some) <= MOST_OF_A_LAYOUT:
        return some
    rest = sorted(some[MOST_OF_A_LAYOUT - 2 :], key=lambda message: message.size)
    return [*some[: MOST_OF_A_LAYOUT - 2], rest[0], rest[-1]]


def test_the_leaves_of_every_frame_tile_it(messages: list[ExchangeMessage]) -> None:
    for message in messages:
        assert_tiled(message.traced)


def test_trees_and_values_agree(messages: list[ExchangeMessage]) -> None:
    for message in messages:
        body = message.tree.find("body")
        assert body is not None or message.layout.body is None
        assert body is None or same(values_of(body), message.body)


def test_no_number_with_an_enum_lacks_a_name(messages: list[ExchangeMessage]) -> None:
    # Real brokers and clients: a number that its enum does not know would mean that the field has another enum.
    bodies = [body for message in messages if (body := message.tree.find("body")) is not None]
    notes = [node.note for body in bodies for node in body.walk() if node.schema is not None]
    assert [note for note in notes if note.isupper()]
    assert not [note for note in notes if note.startswith("UNKNOWN(")]


def test_record_batches_are_whole_and_their_checksums_right(messages: list[ExchangeMessage]) -> None:
    for message in messages:
        codes = {finding.code for finding in message.traced.findings}
        assert not codes & {"bad-crc", "bad-record", "bad-batch", "bad-compression", "malformed"}


def test_nothing_is_lost_or_left_unparsed(decoded: tuple[Capture, list[Exchange]]) -> None:
    capture, exchanges = decoded
    rows = [exchange.row for exchange in exchanges]
    assert {row.kind for row in rows} <= {"exchange", "sasl"}
    assert not capture.problems
    assert not capture.pipeline.ignored
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert [row.time_ns for row in rows] == sorted(row.time_ns for row in rows)


def test_no_whole_fetch_is_masked(decoded: tuple[Capture, list[Exchange]]) -> None:
    """No record of the metadata log that was fetched in these captures has a secret."""
    fetched = [each.response for each in decoded[1] if each.fields.api == "Fetch" and each.response is not None]
    assert not [each for each in fetched if each.masked and each.whole == each.size]


def test_it_is_small_and_says_where_it_comes_from(every_capture: Path) -> None:
    assert every_capture.stat().st_size <= LARGEST
    provenance = json.loads(every_capture.with_suffix(".provenance.json").read_text())
    assert provenance["capture"] == every_capture.name
    assert {"client", "client_version", "broker_version", "scenario", "recorded"} <= provenance.keys()


def kinds(names: Iterable[str]) -> set[object]:
    """What tells captures apart for reading: kinds of rows, sides that lack, record formats and codecs."""
    found: set[object] = set()
    for name in names:
        with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
            for exchange in capture.exchanges():
                found.add((exchange.row.kind, exchange.request is None, exchange.response is None))
                found.update(re.findall(rb'"(?:magic|compression)":[^,]+', json_line(exchange)))
    return found


@pytest.mark.exhaustive
def test_those_that_stand_for_all_have_every_kind_of_row_and_batch() -> None:
    assert kinds(VARIED) == kinds(path.stem for path in CAPTURES)
