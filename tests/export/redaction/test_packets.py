"""A redacted capture has the same structure and nothing confidential: every bundled one, and damaged ones."""

import random
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import dissector
from dissector.capture_session import Capture
from dissector.conversation import Packet, pcapng
from dissector.exchange.model import Exchange, ExchangeMessage
from dissector.export.exporter import export_rows
from dissector.export.formats import ExportFormat, ExportRequest
from dissector.export.packets import carrying_packets
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.packets import redacted_packets
from dissector.export.redaction.rows import RedactedFrames
from dissector.protocol.tree import Node
from tests.conftest import CAPTURES, PCAPS, SOME_BUNDLED
from tests.export.redaction.secrets import KEPT, all_bytes, messages, must_go
from tests.needs import needs
from tests.tls.sessions import session
from tests.traffic import Packet as Segment
from tests.traffic import Turn, capture_of, conversation, ethernet, exchanges, pcap, request, response
from tests.transport.wrapping import fragments

pytestmark = pytest.mark.slow


def redacted(source: Path | str, target: Path, rows: list[int] | None = None) -> Redactor:
    with Capture([str(source)]) as capture:
        list(capture.read())
        redactor = Redactor()
        chosen = range(len(capture)) if rows is None else rows
        frames = RedactedFrames(capture, redactor)
        frames.learn(chosen)
        packets = redacted_packets(capture, chosen, frames, redactor.addresses)
        target.write_bytes(b"".join(pcapng(packets, "made for a test")))
    return redactor


@dataclass(frozen=True)
class Pair:
    """A capture and what became of it."""

    source: Path
    out: Path
    lost: int


@pytest.fixture(scope="module", params=SOME_BUNDLED)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Each bundled capture in turn, redacted once for all tests."""
    out = tmp_path_factory.mktemp("redacted") / "out.pcapng"
    return Pair(request.param, out, redacted(request.param, out).lost)


def has_zeros_for_body(message: ExchangeMessage | None) -> bool:
    """Whether nothing is known of a body, as it is masked as a whole and was not there to its end: there may be no
    bytes that read as it did, which is what redaction looks for otherwise."""
    return message is not None and message.layout.body is None and message.whole < message.size


def comparable(exchange: Exchange) -> tuple[Any, ...]:
    """What is the same in a redacted capture: all of a row but words, what acks say that are masked, and how zeros read
    that stand in place of a body."""
    row, findings = exchange.fields, [(each.code, each.severity, each.path) for each in exchange.findings]
    if any(code == "masked" for code, _, _ in findings):
        findings = [each for each in findings if each[0] not in ("unanswered", "no-response-expected")]
    sides = [name for name in ("request", "response") if has_zeros_for_body(getattr(exchange, name))]
    findings = [each for each in findings if each[0] != "malformed" or each[2].partition(".")[0] not in sides]
    return (
        row.kind, row.time_ns, row.api, row.version, row.correlation_id, row.request_size,
        row.response_size, row.latency_ns, findings,
    )  # fmt: skip


def shape(tree: Node) -> list[tuple[Any, ...]]:
    return [(node.path, node.type, node.start, node.end, node.source) for node in tree.walk()]


def read_findings(message: ExchangeMessage) -> list[tuple[str, str]]:
    found = [(each.code, each.path) for each in message.traced.findings]
    return [each for each in found if each[0] != "malformed"] if has_zeros_for_body(message) else found


def test_rows_and_trees_are_unchanged(pair: Pair) -> None:
    assert pair.lost == 0
    with Capture([str(pair.source)]) as was, Capture([str(pair.out)]) as now:
        for one, other in zip(was.exchanges(), now.exchanges(), strict=True):
            assert comparable(other) == comparable(one)
            for message, again in ((one.request, other.request), (one.response, other.response)):
                assert (message is None) == (again is None)
                if message is not None and again is not None:
                    assert shape(again.tree) == shape(message.tree)
                    assert read_findings(again) == read_findings(message)


def test_nothing_confidential_remains(pair: Pair) -> None:
    gone = must_go(pair.source)
    assert gone or "refused" in pair.source.name
    was = all_bytes(pair.source)
    assert all(each in was for each in gone)
    left = all_bytes(pair.out)
    assert [each for each in gone if each in left] == []


def test_equal_names_stay_equal_and_different_ones_different(pair: Pair) -> None:
    names: dict[object, object] = {}
    with Capture([str(pair.source)]) as was, Capture([str(pair.out)]) as now:
        for message, again in zip(messages(was), messages(now), strict=True):
            for one, other in zip(message.tree.walk(), again.tree.walk(), strict=True):
                field = one.schema.snake_name if one.schema is not None and one.type.endswith("STRING") else "value"
                stays = field.startswith("client_software") or field == "value"  # values may be masked secrets
                if one.value and not stays and str(one.value) not in KEPT:
                    assert names.setdefault(one.value, other.value) == other.value, one.path
    assert len(set(names.values())) == len(names)


def test_numbers_and_ids_stay(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    redacted(PCAPS / "java.pcapng", out)
    with Capture([str(PCAPS / "java.pcapng")]) as was, Capture([str(out)]) as now:
        for message, again in zip(messages(was), messages(now), strict=True):
            for one, other in zip(message.tree.walk(), again.tree.walk(), strict=True):
                if (isinstance(one.value, int) or one.type == "UUID") and one.name != "crc":
                    assert other.value == one.value, one.path


@pytest.mark.long
def test_tshark_finds_every_checksum_valid(tmp_path: Path) -> None:
    needs("tshark")
    out = tmp_path / "out.pcapng"
    redacted(PCAPS / "two-brokers.pcapng", out)
    words = ["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields"]
    fields = [part for name in ("ip.checksum.status", "tcp.checksum.status") for part in ("-e", name)]
    done = subprocess.run(["tshark", "-r", str(out), *words, *fields], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"1\t1"}


def test_addresses_are_replaced_and_ports_are_not(tmp_path: Path) -> None:
    turns = [Turn(True, request(7)), Turn(False, response(7))]
    ends = {"client": ("192.168.17.33", 40001), "server": ("203.0.114.9", 9092)}
    source = capture_of(tmp_path, conversation(turns, **ends))
    out = tmp_path / "out.pcapng"
    redacted(source, out)
    data = out.read_bytes()
    assert bytes((192, 168, 17, 33)) not in data
    assert bytes((203, 0, 114, 9)) not in data
    with Capture([str(out)]) as capture:
        [exchange] = capture.exchanges()
    assert exchange.fields.client.startswith("192.168.")
    assert exchange.fields.client.endswith(":40001")
    assert exchange.fields.server.endswith(":9092")


@pytest.mark.long
def test_a_selection_contains_nothing_of_other_exchanges(tmp_path: Path) -> None:
    chance = random.Random(5)
    for path in CAPTURES[::9]:
        with Capture([str(path)]) as capture:
            was = [comparable(exchange)[:8] for exchange in capture.exchanges()]
        rows = sorted(chance.sample(range(len(was)), min(len(was), 9)))
        out = tmp_path / "out.pcapng"
        redacted(path, out, rows)
        if (now := read_again(out)) != [was[row] for row in rows]:
            # Between holes a frame may not be believed: then not in what is not redacted either.
            with Capture([str(path)]) as capture:
                deque(capture.read(), maxlen=0)
                out.write_bytes(b"".join(pcapng(carrying_packets(capture, rows), "")))
            assert now == read_again(out)


def read_again(path: Path) -> list[tuple[object, ...]]:
    """What tells the exchanges of a capture."""
    with Capture([str(path)]) as capture:
        rows = [comparable(exchange)[:8] for exchange in capture.exchanges()]
    return [row for row in rows if row[0] not in ("gap", "unparsed")]


def damaged(packets: list[Packet], chance: random.Random) -> list[Packet]:
    """What a bad network, a snap length and bad memory make of them."""
    out = []
    for packet in packets:
        fate = chance.random()
        if fate < 0.05:
            continue
        data = bytearray(packet.data)
        if fate < 0.1:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        cut = chance.randint(60, 200) if fate > 0.95 else len(data)
        out.append(packet._replace(data=bytes(data[:cut]), length=len(data)))
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        ("java", 0), ("kraft-quorum", 2), ("plain-socket-message-sets", 0),
        pytest.param("librdkafka-pipelined", 1, marks=pytest.mark.exhaustive),
        pytest.param("encoder", 1, marks=pytest.mark.exhaustive),
    ],
)  # fmt: skip
def test_nothing_confidential_of_a_damaged_capture_remains(name: str, seed: int, tmp_path: Path) -> None:
    gone = must_go(PCAPS / f"{name}.pcapng")
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        list(capture.read())
        packets = list(carrying_packets(capture, range(len(capture))))
    bad, out = tmp_path / "bad.pcapng", tmp_path / "out.pcapng"
    bad.write_bytes(b"".join(pcapng(damaged(packets, random.Random(seed)), "bad")))
    redacted(bad, out)
    left = all_bytes(out)
    assert [each for each in gone if each in left] == []


def test_bytes_outside_of_frames_become_zeros(tmp_path: Path) -> None:
    turns = [*exchanges(5), Turn(True, b"secret words without a frame, over and over again")]
    source = capture_of(tmp_path, conversation(turns))
    out = tmp_path / "out.pcapng"
    redacted(source, out)
    assert b"secret" not in out.read_bytes()
    with Capture([source]) as was, Capture([str(out)]) as now:
        assert [comparable(each)[:6] for each in now.exchanges()] == [comparable(each)[:6] for each in was.exchanges()]


def test_fragments_and_large_segments_become_packets(tmp_path: Path) -> None:
    """What comes in several packets, and what comes in one too large for IP, as network cards put together."""
    turns = [Turn(True, request(1)), Turn(False, response(1, bytes(8) + b"words" * 20_000))]
    large = conversation(turns, segment=60_000)
    packets = [
        part
        for number, packet in enumerate(large)
        for part in (fragments(packet.ip(), number, 1400) if packet.payload else [packet.ip()])
    ]
    source = tmp_path / "in.pcap"
    source.write_bytes(pcap(packets, link_type=101))
    out = tmp_path / "out.pcapng"
    redacted(source, out)
    assert b"words" not in out.read_bytes()
    with Capture([str(source)]) as was, Capture([str(out)]) as now:
        assert [comparable(each) for each in now.exchanges()] == [comparable(each) for each in was.exchanges()]


def test_a_capture_of_no_exchange_has_no_packet(tmp_path: Path) -> None:
    source = tmp_path / "in.pcap"
    source.write_bytes(pcap([ethernet(Segment(True, 1, b"hello"))]))
    with Capture([str(source)]) as capture:
        list(capture.read())
        redactor = Redactor()
        frames = RedactedFrames(capture, redactor)
        assert list(redacted_packets(capture, range(len(capture)), frames, redactor.addresses)) == []


def with_a_number(number: bytes, behind: bytes) -> list[Turn]:
    """Two lookups of an epoch's end, of which the second response has this number; with bytes behind it."""
    asked = {"topics": [{"topic": "orders", "partitions": [{"partition": 1, "leader_epoch": 2}]}]}
    turns = []
    for correlation_id, end in enumerate((bytes(8), number)):
        found = {"error_code": 0, "partition": 1, "end_offset": int.from_bytes(end, "big", signed=True)}
        answer = {"topics": [{"topic": "orders", "partitions": [found]}]}
        turns += [
            Turn(True, dissector.encode_request("OffsetForLeaderEpoch", 0, asked, correlation_id=correlation_id)),
            Turn(False, dissector.encode_response("OffsetForLeaderEpoch", 0, answer, correlation_id=correlation_id)),
        ]
    return [*turns, Turn(False, behind)] if behind else turns


@pytest.mark.parametrize("is_encrypted", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize(
    ("behind", "stays"), [(b"bcLSH" + b"\xff" * 60, False), (b"", True)], ids=["before others", "at the end"]
)
def test_what_a_wrong_size_made_a_number_of_goes(
    tmp_path: Path, behind: bytes, stays: bool, is_encrypted: bool
) -> None:
    """A name whose first letters are the end of a frame, and whose last ones are of none."""
    turns, keys = with_a_number(b"\x00\x03\x00\x0bKsST", behind), tmp_path / "keys.log"
    if is_encrypted:
        encrypted = session(turns)
        turns = encrypted.turns
        keys.write_bytes(encrypted.key_log)
    path, key_logs = capture_of(tmp_path, conversation(turns)), [str(keys)] if is_encrypted else []
    out = tmp_path / "out.pcapng"
    with Capture([path], key_logs=key_logs) as capture:
        deque(capture.read(), maxlen=0)
        rows = [row for row in range(len(capture)) if capture.frames.spans(row)]
        out.write_bytes(b"".join(export_rows(capture, rows, ExportRequest(ExportFormat.PCAPNG, redact=True), print)))
    assert (b"KsST" in out.read_bytes()) == stays
    kinds = []
    for each, logs in ((path, key_logs), (str(out), [])):
        with Capture([each], key_logs=logs) as capture:
            deque(capture.read(), maxlen=0)
            kinds.append([exchange.fields.kind for exchange in capture.exchanges()])
    assert kinds == [["exchange", "exchange"] if stays else ["exchange", "exchange", "unparsed"]] * 2
