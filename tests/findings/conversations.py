"""Captures made for findings: connections with exchanges, each at a time of its own, by our own encoder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dissector
from dissector.capture import GrowingFile
from dissector.capture_session import Capture
from dissector.conversation import Conversation, End, Turn, packets, pcapng
from dissector.core.finding import Finding

Values = dict[str, Any]
START = 1_790_000_000_000_000_000
MS = 1_000_000
SERVER = End("192.0.2.1", 9092)


class Talk:
    """One connection. Times are in milliseconds since the beginning."""

    def __init__(self, number: int = 1, client_id: str = "made", *, closed: bool = False) -> None:
        self.client = End(f"192.0.2.{1 + number}", 40_000 + number)
        self.turns: list[Turn] = []
        self._client_id = client_id
        self._closed = closed
        self._next = 1

    def ask(
        self, at: float, name: str, version: int, body: Values, answer: Values | None = None, *, took: float = 1,
        correlation_id: int | None = None, missing: int = 0,
    ) -> None:  # fmt: skip
        """A request, and its answer if there is one; `missing` bytes are lost right behind the request."""
        number = self._next if correlation_id is None else correlation_id
        self._next = number + 1
        request_frame = dissector.encode_request(name, version, body, correlation_id=number, client_id=self._client_id)
        self.turns.append(Turn(START + int(at * MS), True, request_frame, missing))
        if answer is not None:
            response_frame = dissector.encode_response(name, version, answer, correlation_id=number)
            self.turns.append(Turn(START + int((at + took) * MS), False, response_frame))

    def lose(self, at: float, size: int) -> None:
        """So many bytes of the server's are not captured."""
        self.turns.append(Turn(START + int(at * MS), False, b"", size))

    @property
    def conversation(self) -> Conversation:
        return Conversation(self.client, SERVER, self.turns, closed=self._closed)


def written(folder: Path, *talks: Talk) -> str:
    """A capture file with these connections; its name."""
    path = folder / "made.pcapng"
    path.write_bytes(b"".join(pcapng(packets([talk.conversation for talk in talks]), "made for a test")))
    return str(path)


def found(folder: Path, *talks: Talk) -> list[tuple[int, Finding]]:
    """What the pass finds in a capture of these connections: rows from 0."""
    return troubles(written(folder, *talks))


def troubles(path: str) -> list[tuple[int, Finding]]:
    """What the pass finds in a capture."""
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        return capture.findings.cross_message()


def codes(folder: Path, *talks: Talk) -> list[tuple[int, str]]:
    """The same, by their codes alone."""
    return [(row, finding.code) for row, finding in found(folder, *talks)]


def heartbeat(talk: Talk, at: float, took: float = 1, error: int = 0, **more: Any) -> None:
    """One exchange that says little."""
    body = {"group_id": "readers", "generation_id": 1, "member_id": "one"}
    talk.ask(at, "Heartbeat", 4, body, {"error_code": error}, took=took, **more)


def produce(
    talk: Talk, at: float, records: int = 1, *, producer: tuple[int, int, int] = (-1, -1, -1), value: bytes = b"cup",
    codec: int = 0, error: int = 0, throttle: int = 0,
) -> None:  # fmt: skip
    """One batch to `orders`, partition 0; `producer` is its id, epoch and sequence number."""
    entries = [{"offset": n, "timestamp": START // MS, "value": value} for n in range(records)]
    head = dict(zip(("producer_id", "producer_epoch", "base_sequence"), producer, strict=True))
    batch = {"attributes": codec, "records": entries, **head}
    partition = {"index": 0, "records": {"batches": [batch]}}
    body = {"acks": -1, "timeout_ms": 1000, "topic_data": [{"name": "orders", "partition_data": [partition]}]}
    response_frame = {"index": 0, "error_code": error, "base_offset": int(at), "log_append_time_ms": -1}
    answer = {"responses": [{"name": "orders", "partition_responses": [response_frame]}], "throttle_time_ms": throttle}
    talk.ask(at, "Produce", 9, body, answer)


def fetch(
    talk: Talk, at: float, offset: int, end: int, *, took: float = 1, wait: int = 500, error: int = 0,
    partition_error: int = 0,
) -> None:  # fmt: skip
    """A fetch of `orders`, partition 0, whose high watermark is `end`."""
    request_frame = {"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": offset}]}
    body = {"max_wait_ms": wait, "min_bytes": 1, "topics": [request_frame]}
    partition = {"partition_index": 0, "error_code": partition_error, "high_watermark": end, "records": None}
    answer = {"error_code": error, "responses": [{"topic": "orders", "partitions": [partition]}]}
    talk.ask(at, "Fetch", 12, body, answer, took=took)


def grown(path: Path, whole: bytes, cuts: list[int]) -> Iterator[Capture]:
    """A capture of a file that grows to each cut, and then to its end; yielded at each step."""
    path.write_bytes(b"")
    ends = iter([*cuts, len(whole)])
    done = False

    def is_done() -> bool:
        nonlocal done
        end = next(ends, None)
        if end is None:
            return True
        with path.open("r+b") as file:
            file.seek(0, 2)
            file.write(whole[file.tell() : end])
        return False

    with Capture([GrowingFile(str(path), is_done)]) as capture:
        for _ in capture.read(sort=False):
            yield capture
        yield capture
