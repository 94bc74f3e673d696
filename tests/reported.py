"""What people reported of Kafka's wire protocol, rebuilt: one capture of all, each between hosts and at a time of its own,
and what is to be said of each, on every face.
"""

# ruff: noqa: E501  # bodies of messages read best on one line

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dissector import encode_request, encode_response
from tests.findings.conversations import Values
from tests.findings.wire import Wire, pcap_of

APART: Final = 2_000_000
"""Milliseconds between the beginnings of two cases."""
OFFERED: Final = {0: 9, 1: 12, 3: 12, 18: 4}
"""APIs that brokers offer here, with their newest versions."""
METADATA: Final[Values] = {"topics": [{"name": "tea"}]}
TEA: Final[Values] = {
    "name": "tea",
    "partitions": [{"partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}],
}


@dataclass(frozen=True)
class ReportedCase:
    """What somebody reported."""

    build: Callable[[int], list[Wire]]
    """From the number of the case to its connections."""
    findings: dict[str, int]
    """Codes, and how often."""
    words: tuple[str, ...] = ()
    """Parts of what is said."""
    row: str = ""
    """What a row of it has in the list, if something."""
    rule: str | None = None
    """What `check` says is broken."""


def host(number: int, last: int) -> str:
    return f"10.48.{number}.{last}"


def wire(number: int, connection: int = 0, *, at: float = 0, port: int = 9092) -> Wire:
    """One connection of a case."""
    ends = {"client": host(number, 5), "server": (host(number, 9), port)}
    return Wire(connection, at=number * APART + at, **ends, client_id=client(number))


def client(number: int) -> str:
    return f"client-{number}"


def software(number: int) -> Values:
    """What a client says of itself: each case has its own, as `check` names one message of each client."""
    return {"client_software_name": "librdkafka", "client_software_version": f"2.{number}.0"}


def offers(*more: tuple[int, int]) -> Values:
    return {
        "api_keys": [
            {"api_key": key, "min_version": 0, "max_version": top} for key, top in (OFFERED | dict(more)).items()
        ]
    }


def begun(number: int, connection: int = 0, *more: tuple[int, int], at: float = 0, port: int = 9092) -> Wire:
    """A connection whose broker said which versions it has."""
    made = wire(number, connection, at=at, port=port)
    made.exchange(number * APART + at + 1, "ApiVersions", 3, software(number), offers(*more))
    return made


def answered(change: Callable[[bytes], bytes]) -> Callable[[int], list[Wire]]:
    """An ApiVersions whose response, behind its size, is written otherwise than its version wants."""

    def build(number: int) -> list[Wire]:
        made, at = wire(number), number * APART
        made.request(at + 1, "ApiVersions", 3, software(number))
        body = change(encode_response("ApiVersions", 3, offers(), correlation_id=1)[4:])
        made.received(at + 2, len(body).to_bytes(4, "big") + body)
        return [made]

    return build


def with_header_v1(frame: bytes) -> bytes:
    return frame[:4] + b"\0" + frame[4:]


def with_plain_count(frame: bytes) -> bytes:
    return frame[:6] + bytes([frame[6] - 1]) + frame[7:]


def without_tags(frame: bytes) -> bytes:
    return frame[:-1]


def closed_as_idle(number: int) -> list[Wire]:
    made, at = begun(number), number * APART
    made.close(at + 600_002)
    made.request(at + 720_002, "Metadata", 4, METADATA)
    made.close(at + 720_003, reset=True)
    return [made]


FETCHED: Final[Values] = {
    "max_wait_ms": 500, "min_bytes": 1, "topics": [{"topic": "tea", "partitions": [{"partition": 0, "fetch_offset": 41}]}],
}  # fmt: skip


def tag_of_a_later_version(number: int) -> list[Wire]:
    made, at = begun(number, 0, (1, 16)), number * APART
    topics = [
        {
            "topic_id": "AQIDBAUGBwgJCgsMDQ4PEA",
            "partitions": [{"partition": 0, "replica_directory_id": "EAAAAAAAAAAAAAAAAAAAAA"}],
        }
    ]
    newer = encode_request("Fetch", 17, {"topics": topics}, correlation_id=2, client_id=client(number))
    made.sent(at + 3, newer[:6] + (16).to_bytes(2, "big") + newer[8:])
    made.close(at + 4)
    return [made]


def closed_after_an_answer(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    body = {"acks": 1, "timeout_ms": 1000, "topic_data": []}
    made.exchange(at + 1, "Produce", 0, body, {"responses": []})
    made.request(at + 3, "Produce", 0, body)
    made.close(at + 4)
    return [made]


def older_broker(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    brokers = [{"node_id": 1, "host": host(number, 9), "port": 9092}]
    made.exchange(at + 1, "Metadata", 0, METADATA, {"brokers": brokers, "topics": [TEA]})
    topics = [{"name": "tea", "partition_indexes": [0]}]
    made.request(at + 3, "OffsetFetch", 0, {"group_id": "drinkers", "topics": topics})
    made.close(at + 4)
    return [made]


def null_token(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    made.exchange(at + 1, "SaslHandshake", 1, {"mechanism": "PLAIN"}, {"error_code": 0, "mechanisms": ["PLAIN"]})
    made.request(at + 3, "SaslAuthenticate", 0, {"auth_bytes": b"\0alice\0SeCrEt48"})
    answer = {
        "error_code": 58,
        "error_message": "Authentication failed: Invalid username or password",
        "auth_bytes": b"",
    }
    made.received(at + 4, encode_response("SaslAuthenticate", 0, answer, correlation_id=2)[:-4] + b"\xff" * 4)
    return [made]


def advertised_loopback(number: int) -> list[Wire]:
    made = []
    brokers = [{"node_id": 1, "host": "127.0.0.1", "port": 9092}]
    for connection in range(12):
        each, at = begun(number, connection, at=1000 * connection), number * APART + 1000 * connection
        each.exchange(at + 3, "Metadata", 9, METADATA, {"brokers": brokers, "controller_id": 1, "topics": [TEA]})
        each.close(at + 900, by_client=True)
        made.append(each)
    return made


def partial_message(number: int) -> list[Wire]:
    """Eight fetches of the same offset, each answered with 90 bytes of a message of 5,012."""
    made, at = wire(number), number * APART
    part = (
        (41).to_bytes(8, "big") + (5_000).to_bytes(4, "big") + bytes.fromhex("06f02d460000ffffffff00001388") + b"B" * 60
    )
    asked = {"max_wait_ms": 100, "min_bytes": 1, "topics": [
        {"topic": "tea", "partitions": [{"partition": 0, "fetch_offset": 41, "partition_max_bytes": len(part)}]}
    ]}  # fmt: skip
    for turn in range(8):
        made.request(at + 2 * turn, "Fetch", 1, asked)
        head = encode_response("Fetch", 1, {"responses": [
            {"topic": "tea", "partitions": [{"partition_index": 0, "high_watermark": 90, "records": None}]}
        ]}, correlation_id=turn + 1)[4:-4]  # fmt: skip
        frame = head + len(part).to_bytes(4, "big") + part
        made.received(at + 2 * turn + 1, len(frame).to_bytes(4, "big") + frame)
    return [made]


def older_layout(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    answer = {
        "responses": [{"topic": "tea", "partitions": [{"partition_index": 0, "high_watermark": 90, "records": None}]}]
    }
    for turn in range(3):
        made.request(at + 2 * turn, "Fetch", 1, FETCHED)
        made.received(at + 2 * turn + 1, encode_response("Fetch", 0, answer, correlation_id=turn + 1))
    return [made]


PRODUCED: Final[Values] = {"acks": -1, "timeout_ms": 10_000, "topic_data": [{"name": "tea", "partition_data": [
    {"index": 0, "records": {"batches": [{"records": [{"value": b"cup"}]}]}}
]}]}  # fmt: skip


def too_large_for_the_path(number: int) -> list[Wire]:
    """A large request whose first segment is sent again and again."""
    made, at = begun(number), number * APART
    made.exchange(
        at + 3, "Produce", 7, PRODUCED, {"responses": [{"name": "tea", "partition_responses": [{"index": 0}]}]}
    )
    value = {"index": 0, "records": {"batches": [{"records": [{"value": b"a" * 4000}]}]}}
    body = PRODUCED | {"topic_data": [{"name": "tea", "partition_data": [value]}]}
    large = encode_request("Produce", 7, body, correlation_id=3, client_id=client(number))
    for begin in range(0, len(large), 1448):
        made.sent(at + 15, large[begin : begin + 1448])
    for wait in (200, 600, 1400, 3000, 6200, 12_600, 25_400):
        made.again(at + 15 + wait, large[:1448], len(large))
    return [made]


def always_id_0(number: int) -> list[Wire]:
    made = []
    for connection in range(2):
        each, at = wire(number, connection, at=11_000 * connection), number * APART + 11_000 * connection
        each.request(at + 1, "ApiVersions", 3, software(number))
        each.response(at + 2, "ApiVersions", 3, offers(), 0)
        each.close(at + 10_002, by_client=True)
        made.append(each)
    return made


def vendors_api(number: int) -> list[Wire]:
    made, at = begun(number, 0, (10_001, 2)), number * APART
    name = client(number).encode()
    frame = bytes.fromhex("2711000100000002") + len(name).to_bytes(2, "big") + name + bytes.fromhex("000100")
    made.sent(at + 3, len(frame).to_bytes(4, "big") + frame)
    made.received(at + 4, bytes.fromhex("000000110000000200000000000000000000000000"))
    return [made]


def fast_cgi(number: int) -> list[Wire]:
    made, at = wire(number, port=9000), number * APART
    made.sent(at + 1, bytes.fromhex("01010001000800000001000000000000"))
    made.sent(at + 2, bytes.fromhex("0104000100090700") + b"\x07\x00METHOD" + bytes(8))
    made.received(at + 3, bytes.fromhex("0106000100200000") + b"Status: 200 OK\r\n" * 2)
    made.close(at + 4)
    return [made]


def null_records(number: int) -> list[Wire]:
    made, at = begun(number), number * APART
    answer = {
        "responses": [{"topic": "tea", "partitions": [{"partition_index": 0, "high_watermark": 41, "records": None}]}]
    }
    for turn in range(3):
        made.exchange(at + 3 + 2 * turn, "Fetch", 11, FETCHED, answer)
    return [made]


def too_new_a_magic(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    batch = {"batches": [{"records": [{"value": b"cup"}]}]}
    answer = {
        "responses": [{"topic": "tea", "partitions": [{"partition_index": 0, "high_watermark": 42, "records": batch}]}]
    }
    made.exchange(at + 1, "Fetch", 2, FETCHED, answer)
    return [made]


def delayed_tails(number: int) -> list[Wire]:
    made, at = wire(number), number * APART
    for turn in range(20):
        begin = at + 1 + 240 * turn
        made.request(begin, "Produce", 7, PRODUCED)
        answer = {"responses": [{"name": "tea", "partition_responses": [{"index": 0, "base_offset": turn}]}]}
        frame = encode_response("Produce", 7, answer, correlation_id=turn + 1)
        made.received(begin + 1, frame[:8])
        made.acknowledge(begin + 41)
        made.received(begin + 41, frame[8:])
    return [made]


def tls_to_plain(number: int) -> list[Wire]:
    made, at = wire(number, port=9192), number * APART
    hello = b"\x03\x03" + bytes(range(32)) + b"\0" + bytes.fromhex("0002c02f0100")
    made.sent(
        at + 1, b"\x16\x03\x01" + (len(hello) + 4).to_bytes(2, "big") + b"\x01" + len(hello).to_bytes(3, "big") + hello
    )
    made.close(at + 2)
    return [made, begun(number, 1, port=9192)]  # beside a listener that speaks Kafka: else it may be any server


CASES: Final[dict[str, ReportedCase]] = {
    "closed as idle": ReportedCase(
        closed_as_idle, {"closed-before-request": 1}, ("closed as idle 120.000 s before", "connections.max.idle.ms"),
        "[closed-before-request] the connection was closed as idle",
    ),
    "a tag of a later version": ReportedCase(
        tag_of_a_later_version, {"unreadable-request": 1}, ("in v16, which begins in v17",),
        "[unreadable-request] the broker closed the connection on this request", "request-tag-versions",
    ),
    "closed after the version was answered": ReportedCase(
        closed_after_an_answer, {"closed-in-flight": 1}, row="[closed-in-flight] the broker closed the connection"
    ),
    "a broker that may be too old": ReportedCase(
        older_broker, {"version-removed": 1}, ("which a broker that is too old does not have yet",),
        "[version-removed] the broker closed the connection on OffsetFetch v0", "version-refused",
    ),
    "a null token": ReportedCase(
        null_token, {"error-response": 1, "reads-as": 1, "malformed": 1, "masked": 1},
        ("auth_bytes: length -1 where null is not allowed", "masked: 4 bytes"),
        "[malformed] response.body.error_message: auth_bytes: length -1", "response-malformed",
    ),
    "a loopback address advertised": ReportedCase(
        advertised_loopback, {"advertised-own-host": 1, "reconnect-storm": 1}, ("advertised.listeners", "127.0.0.1:9092"),
        "[advertised-own-host] ",
    ),
    "a message larger than what is asked for": ReportedCase(
        partial_message, {"stuck-fetch": 1},
        ("only the beginning of a message of 5,012 bytes", "max.partition.fetch.bytes"),
        "[stuck-fetch] tea[0]: offset 41 was fetched 8 times",
    ),
    "too large for the path": ReportedCase(
        too_large_for_the_path, {"unacknowledged": 1}, ("sent again 7 times within 25.400 s", "smaller MTU"),
        "[unacknowledged] tea[0]",
    ),
    "always correlation id 0": ReportedCase(
        always_id_0, {"unanswered": 2, "response-not-pending": 2, "inferred": 2},
        ("answered correlation id 0, which no request",),
        "[response-not-pending] the broker answered correlation id 0", "response-id",
    ),
    "the layout of an older version": ReportedCase(
        older_layout, {"malformed": 3, "reads-as": 3}, ("reads exactly as Fetch v0",), "[malformed] ", "response-malformed"
    ),
    "response header v1": ReportedCase(
        answered(with_header_v1), {"malformed": 1, "reads-as": 1}, ("with response header v1",), "[malformed] ",
        "response-malformed",
    ),
    "no tagged fields": ReportedCase(
        answered(without_tags), {"malformed": 1, "reads-as": 1}, ("without tagged fields at its end",), "[malformed] ",
        "response-malformed",
    ),
    "a count that is one too low": ReportedCase(
        answered(with_plain_count), {"trailing-bytes": 1, "reads-as": 1}, ("to which 1 was not added",),
        "[trailing-bytes] response.(rest): 7 bytes after the last field", "response-trailing-bytes",
    ),
    "an API of a vendor": ReportedCase(
        vendors_api, {"unknown-api": 1, "masked": 2}, ("API key 10001 is in the range of",), "15 bytes masked"
    ),
    "FastCGI": ReportedCase(fast_cgi, {}),
    "null records": ReportedCase(null_records, {}, rule="fetch-records-null"),
    "a magic that is too new": ReportedCase(too_new_a_magic, {}, rule="fetch-magic"),
    "tails 40 ms late": ReportedCase(
        delayed_tails, {"delayed-tail": 1}, ("came 40.0 ms after the first", "Nagle"), "[delayed-tail] tea[0]"
    ),
    "TLS to a plain listener": ReportedCase(
        tls_to_plain, {"tls-on-plain-port": 1}, ("set security.protocol=PLAINTEXT",), "TLS on a plaintext listener"
    ),
}  # fmt: skip
"""By what happened."""
NUMBERS: Final = {name: number for number, name in enumerate(CASES, 1)}


def reported_capture(folder: Path) -> str:
    """All cases in one capture; its name."""
    return pcap_of(folder, *(each for name, case in CASES.items() for each in case.build(NUMBERS[name])))
