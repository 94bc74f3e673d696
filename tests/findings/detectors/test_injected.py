"""What a proxy closed is not the broker's fault, and what the broker closes later is."""

from pathlib import Path

import pytest

import dissector
from dissector.capture.injection_notes import CLOSED, InjectionNote
from dissector.conversation import Conversation, End, Packet, Turn, packets, pcapng
from tests.proxy_server.faults.wires import REQUESTS

CLIENT, SERVER = End("10.0.0.7", 50_000), End("10.0.0.1", 9092)
SECOND = 1_000_000_000


def request(name: str, correlation_id: int) -> bytes:
    version, body = REQUESTS[name]
    return dissector.encode_request(name, version, body, correlation_id=correlation_id)


def talk(second: int) -> list[Packet]:
    """A connection on which a Heartbeat comes just behind a Produce; both have no response, and it ends."""
    at = second * SECOND
    turns = [Turn(at, True, request("Produce", 1)), Turn(at + 1_000, True, request("Heartbeat", 2))]
    return list(packets([Conversation(CLIENT, SERVER, turns, closed=True)]))


@pytest.mark.parametrize("action", ["close", "close after", f"held for 2 s, {CLOSED}"])
def test_a_request_that_crossed_a_close_blames_no_broker(tmp_path: Path, action: str) -> None:
    note = InjectionNote("10.0.0.7:50000", 1, "fault 1", action)
    first, again = talk(1_790_000_000), talk(1_790_000_100)
    produce = next(at for at, each in enumerate(first) if request("Produce", 1) in each.data)
    first[produce] = first[produce]._replace(comments=(note.comment(),))
    path = tmp_path / "closed.pcapng"
    path.write_bytes(b"".join(pcapng([*first, *again], "made for a test")))
    found: dict[int, set[str]] = {}
    with dissector.open(path) as capture:
        for row, finding in capture.findings():
            found.setdefault(row.number, set()).add(finding.code)
    assert found[1] == {"injected"}
    assert found.get(2, set()) <= {"unanswered"}
    assert "closed-in-flight" in found[3] | found[4], "the same port, later"
