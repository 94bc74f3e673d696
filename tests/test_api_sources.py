"""A capture opens from whatever a program has it in: its rows are those of its file."""

import gzip
import importlib
import io
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpkt
import pytest

import dissector
from tests.conftest import PCAPS, some_of
from tests.imprecise import DURATIONS

FEW = [PCAPS / f"{name}.pcapng" for name in ("java", "librdkafka-pipelined", "franz-go", "java-sasl-plain")]
"""For the ways that differ little, or take long."""
SIDES = ("request", "response")
Objects = list[dict[str, Any]]


def objects(capture: dissector.Capture) -> Objects:
    with capture:
        return [each.json() for each in capture]


def without_times(found: Objects) -> Objects:
    """What remains if times are floats: dpkt has no nanoseconds."""
    for each in found:
        for name in DURATIONS:
            each.pop(name, None)
        for part in (each, each.get("request"), each.get("response")):
            if part:
                part.pop("time_ns", None)
    return found


def from_bytes(path: Path) -> dissector.Capture:
    return dissector.open(path.read_bytes())


def from_file(path: Path) -> dissector.Capture:
    return dissector.open(path.open("rb"))


def from_gzip(path: Path) -> dissector.Capture:
    return dissector.open(gzip.open(io.BytesIO(gzip.compress(path.read_bytes()))))


def from_middle(path: Path) -> dissector.Capture:
    file = io.BytesIO(b"before" + path.read_bytes())
    file.seek(len(b"before"))
    return dissector.open(file)


@pytest.mark.slow
@pytest.mark.parametrize("path", some_of(FEW, FEW[0].stem), ids=lambda path: path.stem)
@pytest.mark.parametrize("opened", [from_bytes, from_file, from_gzip, from_middle])
def test_bytes_and_open_files_are_what_they_contain(path: Path, opened: Callable[[Path], dissector.Capture]) -> None:
    assert objects(opened(path)) == objects(dissector.open(path))


def test_a_reader_of_dpkts_gives_the_rows_of_its_file(bundled: Path) -> None:
    expected = objects(dissector.open(bundled))
    with bundled.open("rb") as file:
        found = objects(dissector.open(dpkt.pcapng.Reader(file)))
    for one, other in zip(found, expected, strict=True):
        assert all(abs(one[side]["time_ns"] - other[side]["time_ns"]) <= 1_000 for side in SIDES if one.get(side))
    assert without_times(found) == without_times(expected)


@pytest.mark.slow
@pytest.mark.parametrize("path", some_of(FEW, "java"), ids=lambda path: path.stem)
def test_a_packet_list_of_scapys_gives_the_rows_of_its_file(path: Path) -> None:
    utils = pytest.importorskip("scapy.utils", reason="NOT TESTED with scapy: it is not installed")
    importlib.import_module("scapy.layers.inet")  # or scapy does not know what a packet of this link type is

    with path.open("rb") as file:
        assert objects(dissector.open(utils.rdpcap(file))) == objects(dissector.open(path))


def raw_packets(path: Path) -> Iterator[tuple[int, bytes]]:
    """Times in nanoseconds."""
    with dissector.open(path) as capture:
        for exchange in capture:
            yield from ((packet.time_ns, packet.data) for packet in exchange.packets())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("second", [Decimal, Fraction])
def test_exact_times_count_to_the_nanosecond(second: Callable[[int], Any]) -> None:
    packets = dict(raw_packets(PCAPS / "java.pcapng"))
    exact = [(second(time_ns) / 10**9, packets[time_ns]) for time_ns in sorted(packets)]
    assert {each.time_ns for each in dissector.open(exact)} <= packets.keys()


def test_packets_of_an_exchange_come_back_from_any_source() -> None:
    path = PCAPS / "java.pcapng"
    with path.open("rb") as file:
        sources: list[Any] = [path, path.read_bytes(), path.open("rb"), dpkt.pcapng.Reader(file)]
        captures = [dissector.open(each) for each in sources]
        found = [[packet.data for packet in next(each.exchanges("api == Produce")).packets()] for each in captures]
    assert found[1:] == found[:-1]
    assert b"teapot" in found[0][0]


def test_the_packets_of_an_exchange_are_an_exchange() -> None:
    """It is found again in a capture of nothing else, but for the request's offer of versions."""
    with dissector.open(PCAPS / "java.pcapng") as capture:
        exchange = next(capture.exchanges("api == Metadata"))
        again = [(Fraction(packet.time_ns, 10**9), packet.data) for packet in exchange.packets()]
    [copy] = dissector.open(again)
    assert (copy.api, copy.api_version, copy.latency_ns) == (exchange.api, exchange.api_version, exchange.latency_ns)
    assert copy.response is not None
    assert exchange.response is not None
    assert copy.response.data == exchange.response.data


def test_several_sources_are_one_capture_in_the_order_of_time() -> None:
    one, other = PCAPS / "java.pcapng", PCAPS / "aiokafka.pcapng"
    with other.open("rb") as file:
        mixed = dissector.open(one, dpkt.pcapng.Reader(file))
        assert without_times(objects(mixed)) == without_times(objects(dissector.open(one, other)))


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (7, TypeError, "int is not a capture"),
        ([7], dissector.CaptureError, "int is not a packet"),
        ([("now", b"")], dissector.CaptureError, "'now' is not a time in seconds"),
        ([(1.0, "text")], dissector.CaptureError, "tuple is not a packet"),
        (b"", dissector.CaptureError, "empty file"),
        (b"nothing", dissector.CaptureError, "bytes: not a capture"),
        (io.StringIO("text"), TypeError, "binary"),
    ],
)
def test_what_is_no_capture_is_said(source: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        len(dissector.open(source))


def test_a_text_in_place_of_a_time_is_not_repeated() -> None:
    class Text(str):
        def __mul__(self, count: Any) -> str:
            pytest.fail(f"{count} times")

    with pytest.raises(dissector.CaptureError, match="is not a time in seconds"):
        len(dissector.open([(Text("now"), b"")]))


def test_no_packets_are_an_empty_capture() -> None:
    assert list(dissector.open([])) == []
    assert len(dissector.open(iter(()))) == 0


def test_a_closed_capture_says_so() -> None:
    with dissector.open(PCAPS / "java.pcapng") as capture:
        kept = capture[0]
    assert kept.request is not None
    with pytest.raises(ValueError, match="the capture is closed"):
        len(capture)
