"""Names of hosts: those of files, and those of the resolver only if it is asked."""

import json
import struct
from pathlib import Path
from threading import Event, Thread

import pytest

import dissector
from dissector.capture_session import Capture
from dissector.capture_session.host_names import MOST_LOOKUPS, HostNames
from dissector.filter import parse
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.traffic import block, conversation, ethernet, exchanges, pcapng

RESOLUTION = 4


def named_capture(folder: Path, name: bytes) -> str:
    """A capture of 10.0.0.1 and of the broker 10.0.0.2, which has a name in a name resolution block."""
    made = pcapng([ethernet(packet) for packet in conversation(exchanges(3))])
    record = bytes([10, 0, 0, 2]) + name + b"\0"
    body = struct.pack("<HH", 1, len(record)) + record + bytes(-len(record) % 4) + bytes(4)
    path = folder / "named.pcapng"
    path.write_bytes(made + block("<", RESOLUTION, body))
    return str(path)


def rows(capture: Capture, text: str) -> int:
    for _ in capture.read() if not capture.is_read else ():
        pass
    return sum(len(found.rows) for found in capture.select(parse(text)))


def test_names_of_the_file_are_fields_and_filters(tmp_path: Path) -> None:
    path = named_capture(tmp_path, b"broker-1.example")
    done = kdissect("show", path, "--fields", "server.host,host", "-Y", "host contains broker-1")
    assert done.stdout.decode().splitlines() == ["broker-1.example\t10.0.0.1,broker-1.example"] * 3
    counted = kdissect("stats", path, "--by", "server.host", "-f", "json")
    assert json.loads(counted.stdout.splitlines()[0])["server.host"] == "broker-1.example"


def test_a_hostile_name_is_shown_and_does_nothing(tmp_path: Path) -> None:
    done = kdissect("show", named_capture(tmp_path, b"\x1b[2Jbroker"), "--fields", "server.host", "--limit", "1")
    assert b"\x1b" not in done.stdout
    assert "␛[2Jbroker" in done.stdout.decode()


def test_without_a_name_the_address_stands(tmp_path: Path) -> None:
    path = tmp_path / "plain.pcapng"
    path.write_bytes(pcapng([ethernet(packet) for packet in conversation(exchanges(3))]))
    with Capture([str(path)]) as capture:
        assert rows(capture, "server.host == 10.0.0.2") == 3


def test_nothing_is_resolved_unless_it_is_asked_for() -> None:
    asked: list[str] = []
    names = HostNames(lambda _: None, resolves=False, resolver=lambda address: asked.append(address))
    assert names("10.0.0.1") is None
    assert asked == []


def test_a_program_asks_the_resolver_only_if_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostbyaddr", lambda address: (f"host-{address}", [], [address]))
    path = named_capture(tmp_path, b"of-file")
    for resolve, client in ((False, "10.0.0.1"), (True, "host-10.0.0.1")):
        with dissector.open(path, resolve=resolve) as capture:
            assert (capture[0]["client.host"], capture[0]["server.host"]) == (client, "of-file")


def test_each_address_is_resolved_once() -> None:
    asked: list[str] = []

    def resolver(address: str) -> str | None:
        asked.append(address)
        return None if address.endswith("2") else f"host-{address}"

    names = HostNames(lambda _: None, resolves=True, resolver=resolver)
    assert [names(f"10.0.0.{n % 3}") for n in range(9)] == ["host-10.0.0.0", "host-10.0.0.1", None] * 3
    assert sorted(asked) == ["10.0.0.0", "10.0.0.1", "10.0.0.2"]


def test_a_name_of_the_file_comes_first() -> None:
    names = HostNames(lambda _: "of-file", resolves=True, resolver=lambda _: "of-resolver")
    assert names("10.0.0.1") == "of-file"


def test_a_slow_resolver_holds_nobody_up_for_long() -> None:
    go = Event()

    def resolver(_address: str) -> str | None:
        go.wait()
        return "late"

    names = HostNames(lambda _: None, resolves=True, patience=0.05, resolver=resolver)
    assert [names("10.0.0.1") for _ in range(3)] == [None] * 3
    names("10.0.0.2")
    go.set()
    while names("10.0.0.1") is None:
        pass
    assert names("10.0.0.1") == "late"


def test_the_thread_that_draws_never_waits() -> None:
    go = Event()
    names = HostNames(lambda _: None, resolves=True, patience=1e9, resolver=lambda _: "late" if go.wait() else None)
    names.spares_main_thread = True
    assert names("10.0.0.1") is None
    found: list[str | None] = []
    other = Thread(target=lambda: found.append(names("10.0.0.1")))
    other.start()
    go.set()
    other.join()
    assert found == ["late"]


def test_lookups_are_bounded() -> None:
    names = HostNames(lambda _: None, resolves=True, resolver=str)
    names._found = dict.fromkeys(map(str, range(MOST_LOOKUPS)))
    assert names("10.0.0.1") is None


@pytest.mark.long
@cases(
    ("text", "count"),
    [
        ("ip.addr == 10.0.0.1", 3), ("ip.addr == 10.0.0.2", 3), ("ip.addr == 10.0.0.0/30", 3),
        ("ip.addr == 127.0.0.0/8", 0), ("ip.addr == ::1", 0), ("ip.src in {127.0.0.0/8, 10.0.0.1}", 3),
        ("ip.src == 10.0.0.2", 0), ("ip.dst != 10.0.0.2", 0), ("ip.dst != 10.0.0.1", 3), ("ip.addr contains 0.0.2", 3),
        ("address == 10.0.0.2:9092", 3), ("broker == 10.0.0.2:9092", 3), ("tcp.port == 9092", 3),
        ("tcp.dstport in {9000..9100}", 3), ("client.port == 9092", 0), ("broker.port == 9092", 3),
    ],
)  # fmt: skip
def test_addresses_are_filtered_as_in_wireshark(tmp_path: Path, text: str, count: int) -> None:
    with Capture([named_capture(tmp_path, b"broker")]) as capture:
        assert rows(capture, text) == count


def test_a_word_that_is_no_address_is_pointed_at() -> None:
    with pytest.raises(ValueError, match=r"'10\.0\.0' is not an IP address"):
        parse("ip.addr == 10.0.0")
