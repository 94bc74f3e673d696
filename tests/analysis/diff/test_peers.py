"""The clients and connections of one capture."""

from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.diff import diff
from dissector.analysis.diff.peers import Peer, PeerIndex, PeerSide
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.findings.conversations import Talk, written
from tests.traffic import pcap

SOFTWARE = ("v1.15.0", "v1.16.1")
HOSTILE = "\x1b[31mlate"


def read(*paths: str) -> Capture:
    capture = Capture(paths)
    for _ in capture.read():
        pass
    return capture


def indexed(capture: Capture) -> PeerIndex:
    return PeerIndex(capture, len(capture), lambda _: None)


def rows(capture: Capture, peer: Peer) -> list[int]:
    found = np.concatenate([*PeerSide(capture, "", peer=peer).rows()])
    return sorted(row for row in found.tolist() if capture.exchange(row).request is not None)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A capture of one client id that two releases of a program use, each on a connection, and one whose connection
    began before the capture; the connection of another client id began before it, too."""
    talks = [Talk(n, "kgo" if n < 4 else HOSTILE) for n in range(1, 5)]
    for number, (talk, software) in enumerate(zip(talks, (*SOFTWARE, "", ""), strict=True)):
        at = 10 * number
        if software:
            named = {"client_software_name": "franz-go", "client_software_version": software}
            talk.ask(at, "ApiVersions", 3, named, {"error_code": 0, "api_keys": []})
        talk.ask(at + 5, "Metadata", 1, {"topics": []}, {"brokers": [], "controller_id": 1, "topics": []})
    return written(tmp_path_factory.mktemp("peers"), *talks)


def test_clients_come_by_likeness_and_a_consumer_is_most_like_a_consumer() -> None:
    with read(str(PCAPS / "java-classic.pcapng")) as capture:
        index = indexed(capture)
        mine = index.client_of(18)
        assert mine is not None
        assert (mine.client_id, mine.software) == ("consumer-java-classic-group-1", "apache-kafka-java 4.3.1")
        assert mine.connections.tolist() == [5, 6, 7]
        others, count = index.clients_like(mine)
        assert [each.client_id for each in others] == ["consumer-java-classic-group-2", "adminclient-1", "producer-1"]
        assert count == 3
        assert [(each.common, each.either) for each in others] == [(10, 12), (2, 13), (2, 14)]
        connection = index.connection_of(18)
        assert connection is not None
        others, count = index.connections_like(connection)
        assert count == 9
        assert (others[0].connections.tolist(), others[0].common) == ([10], 3)


@pytest.mark.parametrize("name", ["java-classic", "trouble-rebalance-loop", "compare-librdkafka-1"])
def test_every_request_is_of_one_client_and_of_one_connection(name: str) -> None:
    with read(str(PCAPS / f"{name}.pcapng")) as capture:
        index = indexed(capture)
        requests = [n for n in range(len(capture)) if capture.exchange(n).request is not None]
        client, connection = index.client_of(requests[0]), index.connection_of(requests[0])
        assert client is not None
        assert connection is not None
        for mine, others in (
            (client, index.clients_like(client)[0]),
            (connection, index.connections_like(connection)[0]),
        ):
            parts = [rows(capture, each) for each in (mine, *others)]
            assert sorted(row for part in parts for row in part) == requests
            assert [len(part) for part in parts] == [each.exchanges for each in (mine, *others)]
            assert requests[0] in parts[0]


def test_two_releases_with_one_client_id_are_two_clients(upgraded: str) -> None:
    with read(upgraded) as capture:
        index = indexed(capture)
        first = index.client_of(0)
        assert first is not None
        others, _ = index.clients_like(first)
        assert {(each.client_id, each.software) for each in others} == {
            ("kgo", "franz-go v1.16.1"), ("kgo", ""), (HOSTILE, ""),
        }  # fmt: skip
        sides = [PeerSide(capture, each.software, peer=each) for each in (first, others[0])]
        found = diff(sides[0], sides[1])
        assert [found.a.exchanges, found.b.exchanges] == [2, 2]


def test_a_connection_without_software_is_of_the_only_one_that_its_client_id_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with read(str(PCAPS / "java-classic.pcapng")) as capture:
        learned = capture.connections.software
        monkeypatch.setattr(
            capture.connections, "software", lambda number: ("", "") if number == 6 else learned(number)
        )
        client = indexed(capture).client_of(18)
        assert client is not None
        assert client.connections.tolist() == [5, 6, 7]


def test_reading_stops_where_the_watcher_says_so_and_at_the_row_that_is_named() -> None:
    def stop(_: int) -> None:
        raise InterruptedError

    with read(str(PCAPS / "java-classic.pcapng")) as capture:
        with pytest.raises(InterruptedError):
            PeerIndex(capture, len(capture), stop)
        early = PeerIndex(capture, 9, lambda _: None)
        assert early.client_of(18) is None
        client = early.client_of(0)
        assert client is not None
        assert [each.client_id for each in early.clients_like(client)[0]] == ["producer-1"]
        assert [*PeerSide(capture, "", stop=9, peer=client).rows()][-1].max() < 9


def test_a_capture_without_requests_has_nobody(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(pcap([]))
    with read(str(path)) as capture:
        assert len(capture) == 0
        PeerIndex(capture, 0, lambda _: None)
