"""A filter's answer is one: by columns, by exchanges, and by looking into the JSON object by hand."""

import json
import operator
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.exchange.model import Exchange
from tests.cases import cases
from tests.conftest import BUNDLED, PCAPS, some_of
from tests.filter.evaluation import Leaf, bundled, exchanges, leaves, matching_rows, objects, opened
from tests.needs import needs
from tests.traffic import Turn, capture_of, conversation, request, response

NAMES = ("java", "java-classic", "java-transactions", "plain-socket-message-sets", "kafka-python-as-0.10-sasl")
SEGMENTS = sorted(str(path) for path in (PCAPS / "segments").rglob("*.log"))[:3]
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
ROW_FIELDS = {
    "number": "number", "conn": "connection", "api_key": "api_key", "version": "api_version",
    "corr": "correlation_id", "kind": "kind", "client_id": "client_id", "client": "client", "server": "server",
}  # fmt: skip
"""With the names that the JSON object has for them."""


HEX = ("key", "value", "data", "compressed")


def fits(value: object, how: str, wanted: object) -> bool:
    same = type(value) is type(wanted) and value is not None
    return same and COMPARE[how](value, wanted)


def quoted(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value).lower() if isinstance(value, bool) else str(value)


@given(st.data())
def test_row_fields_are_those_of_the_json_object(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    field = data.draw(st.sampled_from(sorted(ROW_FIELDS)))
    values = [each.get(ROW_FIELDS[field]) for each in objects(name)]
    there = sorted({value for value in values if value is not None}, key=str)
    wanted = data.draw(st.sampled_from(there) if there else st.integers())
    if isinstance(wanted, int):
        wanted += data.draw(st.sampled_from([0, 0, 1, -1, 10**30, -(10**30)]))
    how = data.draw(st.sampled_from(sorted(COMPARE) if isinstance(wanted, int) else ["==", "!="]))
    capture = opened(name)
    expected = [n for n, value in enumerate(values) if fits(value, how, wanted)]
    assert matching_rows(f"{field} {how} {quoted(wanted)}", capture) == expected


@given(st.sampled_from(NAMES), st.sampled_from(sorted(COMPARE)), st.integers(-3, 500_000))
def test_latency_is_exact(name: str, how: str, wanted: int) -> None:
    values = [each.get("latency_ns") for each in objects(name)]
    capture = opened(name)
    for text in (f"{wanted}us", f"{wanted / 1000:.3f}ms", f"{wanted * 1000}ns"):
        expected = [n for n, value in enumerate(values) if fits(value, how, wanted * 1000)]
        assert matching_rows(f"latency {how} {text}", capture) == expected


@given(st.sampled_from(NAMES), st.sampled_from(sorted(COMPARE)), st.integers(0, 2_000))
def test_sizes_are_of_either_side(name: str, how: str, wanted: int) -> None:
    sizes = [[side["size"] for side in (each.get("request"), each.get("response")) if side] or [each.get("size")]
             for each in objects(name)]  # fmt: skip
    capture = opened(name)
    expected = [n for n, both in enumerate(sizes) if any(fits(size, how, wanted) for size in both)]
    assert matching_rows(f"size {how} {wanted}", capture) == expected


def fields(name: str) -> list[Leaf]:
    """Plain values in the bodies of a capture, each kind once."""
    found = {}
    for each in objects(name):
        if each["kind"] == "exchange":
            for path, value in leaves({side: each[side] for side in ("request", "response")}):
                if path[1:2] == ("body",) and plain(path, value) and path[-1] not in HEX:
                    found[path, value] = None
    return sorted(found, key=str)


def plain(path: tuple[str, ...], value: object) -> bool:
    """Whether it stands in the body, and not in what bytes hold."""
    return isinstance(value, bool | int | str) and "records" not in path and not inside(path)


def inside(path: tuple[str, ...]) -> bool:
    """Whether no table says what stands there; or it is hex, of bytes of a record."""
    return any(part.endswith("_decoded") for part in path) or ("records" in path and path[-1] in HEX)


@pytest.mark.slow
@given(st.data())
def test_fields_of_bodies_are_those_of_the_json_object(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    path, wanted = data.draw(st.sampled_from(fields(name)))
    how = data.draw(st.sampled_from(["==", "!="] if isinstance(wanted, bool | str) else sorted(COMPARE)))
    cut = data.draw(st.integers(2, len(path) - 1))
    text = f"{path[0]}.{'.'.join(path[cut:])}" if data.draw(st.booleans()) else f"{path[0]}.{'.'.join(path[1:])}"
    at_top = text.startswith(f"{path[0]}.body.")
    literal = f"0x{wanted}" if is_bytes(path, wanted) else quoted(wanted)
    expected = []
    for n, each in enumerate(objects(name)):
        found = [
            value for where, value in leaves({path[0]: each[path[0]]} if each["kind"] == "exchange" else {})
            if where[1:2] == ("body",) and not inside(where)
            and (where == path if at_top else where[2:][-len(path[cut:]) :] == path[cut:])
        ]  # fmt: skip
        if any(fits(value, how, wanted) for value in found):
            expected.append(n)
    capture = opened(name)
    assert matching_rows(f"{text} {how} {literal}", capture) == expected


def is_bytes(path: tuple[str, ...], value: object) -> bool:
    """These names are of bytes fields in the captures at hand."""
    hexadecimal = isinstance(value, str) and re.fullmatch(r"(?:[0-9a-f]{2})+", value) is not None
    return hexadecimal and path[-1] in ("metadata", "assignment", "auth_bytes", "member_metadata", "member_assignment")


FIND: list[tuple[str, str, Callable[[Exchange, dict[str, Any]], bool]]] = [
    ("java", "api == fetch", lambda each, _: each.fields.api == "Fetch"),
    ("java", "api in {Fetch, 0}", lambda each, _: each.fields.api in ("Fetch", "Produce")),
    ("java", 'api contains "Offset"', lambda each, _: "Offset" in each.fields.api),
    ("java", "error", lambda each, _: any(finding.code == "error-response" for finding in each.findings)),
    ("java", "error == group_id_not_found", lambda each, _: "GROUP_ID_NOT_FOUND" in each.row.info),
    ("java", "finding == error-response", lambda each, _: any(f.code == "error-response" for f in each.findings)),
    ("java", "severity >= warning", lambda each, _: str(each.row.severity) in ("warning", "error")),
    ("java", "info contains gzip", lambda each, _: "gzip" in each.row.info),
    ("java", "!response", lambda each, _: each.response is None),
    ("java-classic", "topic == java-classic && api == Fetch && request.session_epoch > 0",
     lambda each, _: "java-classic" in (each.fetched or ())),
    ("java", "topic_id_decoded == java-orders", lambda _, value: '"topic_id_decoded": "java-orders"' in value["text"]),
    ("java", "request.max_wait_ms in {100ms..0.5s}", lambda each, _: each.fields.api == "Fetch"),
    ("java", "exists request.topics && api == Metadata",
     lambda each, value: each.fields.api == "Metadata" and value["request"]["body"]["topics"] is not None),
    ("java", "request.body.topics == null", lambda _, value: value["request"]["body"].get("topics", 0) is None),
    ("java", "records.batches.compression == zstd", lambda _, value: '"compression": "zstd"' in value["text"]),
    ("java", "records.value matches 'order-1\\b'", lambda _, value: b"order-1".hex() in value["text"]),
    ("java-classic", "metadata_decoded.topics", lambda each, _: each.fields.api == "JoinGroup"),
    ("java-classic", "group == java-classic-group && api == FindCoordinator",
     lambda each, value: each.fields.api == "FindCoordinator" and value["request"]["body"]["key_type"] == 0),
    ("java-classic", "request.header.client_id matches '^CONSUMER'",
     lambda each, _: str(each.fields.client_id).startswith("consumer")),
    ("plain-socket-message-sets", "records.key", lambda _, value: '"key": "' in value["text"]),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@cases(("name", "text", "expected"), FIND, ids=[text for _, text, _ in FIND])
def test_words_mean_what_people_read_in_them(name: str, text: str, expected: Callable[..., bool]) -> None:
    values = [value | {"text": json.dumps(value)} for value in objects(name)]
    rows = [n for n, (each, value) in enumerate(zip(exchanges(name), values, strict=True)) if expected(each, value)]
    capture = opened(name)
    found = matching_rows(text, capture)
    assert found == rows


def test_partitions_of_fetch_sessions_are_matched() -> None:
    capture = opened("java-classic")
    rows = matching_rows("api == Fetch && partition == 3 && topic == java-classic", capture)
    assert any(not capture.exchange(row).request.body["topics"] for row in rows)


def test_times_are_of_the_calendar_or_since_the_start() -> None:
    capture = opened("java")
    middle = capture.exchange(30).fields.time_ns
    second = f"{middle // 10**9}"
    day = subprocess.run(["date", "-u", "-d", f"@{second}", "+%Y-%m-%dT%H:%M:%S"], capture_output=True, check=True)
    absolute = f"{day.stdout.decode().strip()}.{middle % 10**9:09d}Z"
    expected = [n for n in range(len(capture)) if capture.exchange(n).fields.time_ns >= middle]
    assert matching_rows(f"time >= {absolute}", capture) == expected
    assert matching_rows(f"time >= {middle - capture.start_ns}ns", capture) == expected
    assert matching_rows(f"time in {{{absolute}..2100-01-01}}", capture) == expected


def test_some_value_differs_is_not_the_same_as_no_value_equals() -> None:
    capture = opened("java-admin", "librdkafka-acks0")
    some = set(matching_rows("response.error_code != 0", capture))
    none = set(matching_rows("!(response.error_code == 0)", capture))
    assert some - none, "an error among codes of 0"
    assert none - some, "responses without any code"


OF_FILES = (
    "kind == batch", "records.value contains a", "base_offset > 1", "size > 100", "exists records.value",
    "position < 1k", "number in {2..4}", "server contains segments",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("text", some_of(OF_FILES, "kind == batch", "records.value contains a", "position < 1k"))
def test_entries_of_kafka_s_files_are_matched(text: str) -> None:
    assert matching_rows(text, opened(bundled("java"), *SEGMENTS))


ODD = (
    "api == Metadata", "!(api == Metadata)", "version == 0", "api_key", "kind == exchange", "kind != exchange",
    "request", "response", "!request && response", "size > 20", "request.size", "response.size", "time >= 0s",
    "latency", "corr == 9", "client_id", "error", "response.topics", "topic", "server", "conn > 0",
    "finding == orphan", "severity == error",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@cases("text", ODD)
def test_rows_that_the_index_cannot_decide_are_decoded(tmp_path: Path, text: str) -> None:
    """Responses without requests, requests without responses, a gap, TLS on Kafka's port."""
    kafka = [Turn(True, request(n)) for n in range(3)] + [Turn(False, response(n)) for n in (0, 9, 1)]
    packets = conversation(kafka, segment=10)
    del packets[-5]
    hello = bytes.fromhex("16030100050100000100") * 4
    tls = conversation([Turn(True, hello), Turn(False, hello)], client=("10.0.0.9", 5000))
    capture = opened(capture_of(tmp_path, packets + tls))
    assert len({capture.exchange(row).fields.kind for row in range(len(capture))}) > 1
    matching_rows(text, capture)


@pytest.mark.slow
@pytest.mark.parametrize("path", BUNDLED)
def test_every_capture_answers_one_way(path: Path) -> None:
    capture = opened(str(path))
    for text in ("api == Fetch || latency > 2ms", "error", "topic", "group", "partition > 0", "client_id",
                 "!(version > 3)", "records.key", "kind != exchange", "server contains 9092", "size > 300",
                 "exists error_code", "api contains a && !response", "severity", "time > 10ms"):  # fmt: skip
        matching_rows(text, capture)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("api_key == 1", "kafka.api_key == 1"),
        ("api == Metadata && corr > 2", "kafka.api_key == 3 && kafka.correlation_id > 2"),
        ("request.size > 100", "kafka.len > 96 && kafka.request.frame"),
    ],
)
def test_tshark_finds_the_same(ours: str, theirs: str) -> None:
    needs("tshark")
    side = "tcp.dstport == 9092"
    theirs = theirs.replace("kafka.request.frame", side)
    command = ["tshark", "-r", bundled("java"), "-Y", f"({theirs}) && {side}", "-T", "fields", "-e", "tcp.srcport",
               "-e", "kafka.correlation_id"]  # fmt: skip
    tshark = subprocess.run(command, capture_output=True, check=True).stdout.decode().splitlines()
    expected = {(port, number) for line in tshark for port, _, numbers in (line.partition("\t"),)
                for number in numbers.split(",")}  # fmt: skip
    capture = opened("java")
    found = [capture.exchange(row).fields for row in matching_rows(ours, capture)]
    assert {(row.client.rpartition(":")[2], str(row.correlation_id)) for row in found} == expected
