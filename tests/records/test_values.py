"""Keys and values opened: whatever the bytes and the schemas are, there is a value or a finding, in bounded time."""

import io
import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from threading import Event, Thread
from time import sleep

import fastavro
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.core.limits import DEFAULT, Limits
from dissector.core.text import HOSTILE
from dissector.protocol.records.batch import RecordHeader
from dissector.protocol.wire import uvarint_bytes
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import pretty_text, record_object, value_text
from dissector.records.values.avro import parse_avro
from dissector.records.values.opened import UnreadableError
from dissector.records.values.opener import ValueOpener, envelope
from dissector.records.values.proto_text import parse_proto
from dissector.records.values.schema_reference import ID, SchemaKey
from dissector.records.values.schema_registry import SchemaRegistry
from dissector.records.values.schemas import (
    AVRO_SCHEMA,
    PROTOBUF_TEXT,
    SchemaLocationError,
    Schemas,
    SchemaText,
    make_schema,
    opener_with,
)
from dissector.records.values.trace_context import header_words
from tests.cases import cases

PLAIN = ValueOpener()
SELF = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
LONG_NAMED = {"type": "record", "name": "R", "fields": [{"name": "n" * 100_000, "type": "null"}]}


class Given:
    """Schemas by id."""

    is_remote = False

    def __init__(self, **texts: SchemaText) -> None:
        self.texts = texts

    def text(self, key: SchemaKey) -> SchemaText | None:
        return self.texts.get(f"s{key.name}")


def avro(schema: object) -> SchemaText:
    return SchemaText(AVRO_SCHEMA, json.dumps(schema).encode())


def framed(number: int, data: bytes) -> bytes:
    return b"\x00" + struct.pack(">I", number) + data


def opener(bounds: Limits = DEFAULT, **texts: SchemaText) -> ValueOpener:
    return ValueOpener(Schemas(Given(**texts), bounds), bounds)


@cases(
    ("data", "form", "value"),
    [
        (None, "null", None), (b"", "text", ""), (b"tea", "text", "tea"),
        (b"\x00\x00\x00\x07", "bytes", b"\x00\x00\x00\x07"),
        (b"\xff", "bytes", b"\xff"), (b' {"a": [1, null]}\n', "json", {"a": [1, None]}), (b"{no", "text", "{no"),
        (b'{"n": 123456789012345678901234567890}', "json", {"n": 123456789012345678901234567890}),
        (b"17", "text", "17"),
        (b'[{"a": NaN}]', "text", '[{"a": NaN}]'), (framed(7, b"xyz"), "bytes", framed(7, b"xyz")),
        (framed(9, b'{"id": 1}'), "json", {"id": 1}),
    ],
)  # fmt: skip
def test_values_are_what_they_look_like(data: bytes | None, form: str, value: object) -> None:
    opened = PLAIN.open(data)
    assert (opened.form, opened.value) == (form, value)


def test_a_schema_id_is_named_without_schemas_too() -> None:
    assert PLAIN.open(framed(7, b"xyz")).schema == "schema 7"
    assert PLAIN.open(b"\x00" + struct.pack(">Q", 1234) + b"x").schema == "schema 1234"
    headers = [RecordHeader("__value_schema_id", b"\x01" + bytes(range(16)))]
    assert PLAIN.open(b"x", headers=headers).schema == "schema 00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert PLAIN.open(b"x", headers=headers, is_key=True).schema == ""


names = st.sampled_from(["a", "b", "c"])
SCHEMAS = st.recursive(
    st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"]),
    lambda inner: st.one_of(
        inner.map(lambda it: {"type": "array", "items": it}),
        inner.map(lambda it: {"type": "map", "values": it}),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda some: {"type": "record", "fields": [{"name": f"f{n}", "type": each} for n, each in enumerate(some)]}
        ),
    ),
    max_leaves=6,
)  # fmt: skip


def with_names(schema: object, numbers: Iterator[int]) -> object:
    """A schema whose records have a name each."""
    if isinstance(schema, list):
        return [with_names(each, numbers) for each in schema]
    if not isinstance(schema, dict):
        return schema
    named = {key: with_names(each, numbers) for key, each in schema.items()}
    return named | {"name": f"R{next(numbers)}"} if schema.get("type") == "record" else named


@given(SCHEMAS.map(lambda schema: with_names(schema, count())), st.randoms(use_true_random=False))
def test_avro_is_read_as_fastavro_reads_it(schema: object, random) -> None:
    from fastavro.utils import generate_one

    schema_of = fastavro.parse_schema(schema, _force=True)
    value = generate_one(schema_of)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema_of, value)
    data = out.getvalue()
    theirs = fastavro.schemaless_reader(io.BytesIO(data), schema_of, None)
    assert repr(parse_avro([schema]).read(data)[1]) == repr(theirs)


@given(st.binary(max_size=60))
@settings(max_examples=60)
def test_any_bytes_by_a_schema_are_a_value_or_a_finding(data: bytes) -> None:
    few = Limits(value_nodes=500)
    found = opener(
        few, s1=avro(SELF), s2=avro({"type": "array", "items": "null"}), s3=avro({"type": "map", "values": "null"}),
        s4=SchemaText(PROTOBUF_TEXT, b"message M { repeated M m = 1; string t = 2; map<string, M> n = 3; }"),
    )  # fmt: skip
    for number in range(1, 5):
        opened = found.open(framed(number, data))
        assert opened.problem is not None or opened.form in ("avro", "protobuf")
        value_text(opened), pretty_text(opened)


@given(st.binary(max_size=40))
def test_any_bytes_open_and_are_clean_text(data: bytes) -> None:
    record = ExchangeRecord(data.decode("latin1"), 0, 0, 0, data, b'{"' + data, [RecordHeader("h", data)])
    for text in (value_text(record.opened_key), value_text(record.opened_value)):
        assert not HOSTILE.search(text)
    record_object(record)


@cases(
    ("schema", "data", "words"),
    [
        (SELF, b"\x02" * 100_000, "more than 100 levels deep"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 200,000 values"),
        ({"type": "array", "items": "null"}, b"\x01\x02" * 9, "number"),
        ("string", b"\xfe\xff\xff\xff\x0f", "a length of"),
        ("int", b"\xff" * 20, "a number of over 64 bits"),
        ("int", b"\x02\x02", "1 bytes after the value"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x08", "symbol 4"),
        (["null", "int"], b"\x0a", "branch 5"),
        ({"type": "fixed", "name": "F", "size": 1 << 40}, b"", "a length of"),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "Nobody"}]}, b"", "invalid Avro schema"),
        ({"type": "array", "items": "null", "__fastavro_parsed": True}, b"\xfe\xff\xff\xff\x0f", "more than"),
        (
            {"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["s" * 100_000]}},
            b"\xd0\x0f" + b"\0" * 1000 + b"\0", "bytes of names",
        ),
        ({"type": "array", "items": LONG_NAMED}, b"\xd0\x0f\0", "bytes of names"),
    ],
)  # fmt: skip
def test_avro_that_lies_recurses_or_explodes_is_a_finding(schema: object, data: bytes, words: str) -> None:
    found = opener(s7=avro(schema)).open(framed(7, data)).problem
    assert found is not None
    assert words in found.message


@cases("size", [DEFAULT.decimal_bytes, DEFAULT.decimal_bytes + 1])
def test_a_decimal_is_a_number_up_to_a_limit_and_bytes_beyond(size: int) -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 3000, "scale": 2}
    length = 2 * size
    data = bytes([length & 0x7F | 0x80, length >> 7]) + b"\x01" * size
    value = opener(s7=avro(schema)).open(framed(7, data)).value
    assert isinstance(value, str if size <= DEFAULT.decimal_bytes else bytes)


def test_a_schema_nested_without_end_is_a_finding() -> None:
    deep: object = "int"
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(UnreadableError, match="levels deep"):
        parse_avro([deep])
    text = b"{" + b'"type": {' * 900 + b"}" * 900 + b"}"
    assert opener(s7=SchemaText(AVRO_SCHEMA, text)).open(framed(7, b"")).problem is not None


@cases("data", [b"[" * 500 + b"]" * 500, b"[" * 100_000 + b"]" * 100_000, b"[" + b"{}," * 250_000 + b"0]"])
def test_json_too_deep_or_too_large_stays_text_with_a_finding(data: bytes) -> None:
    opened = PLAIN.open(data)
    assert opened.form == "text"
    assert opened.problem is not None or len(data) > 1 << 20 or data.startswith(b"[[")


PROTO = b"""
syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
message Cart { int64 id = 1; }
message Order { string message = 1 [deprecated = true]; Kind kind = 2; repeated int32 option = 3;
  map<string, Line> lines = 4;
  google.protobuf.Timestamp at = 5; enum Kind { A = 0; B = 1; } message Line { uint32 n = 1; } reserved 9 to max; }
"""


def test_protobuf_is_read_by_its_text() -> None:
    line = b"\x0a\x01x\x12\x02\x08\x05"
    data = b"\x0a\x02hi\x10\x01\x1a\x02\x01\x02\x22" + bytes([len(line)]) + line + b"\x2a\x02\x08\x00"
    order = {"message": "hi", "kind": "B", "option": [1, 2], "lines": {"x": {"n": 5}}, "at": "1970-01-01T00:00:00Z"}
    found = opener(s8=SchemaText(PROTOBUF_TEXT, PROTO, "o.proto"))
    opened = found.open(framed(8, b"\x02\x02" + data))
    assert (opened.form, opened.value, opened.schema) == ("protobuf", order, "schema 8 shop.Order")
    cart = found.open(framed(8, b"\x00\x08\x07"))
    assert (cart.value, cart.schema) == ({"id": 7}, "schema 8 shop.Cart")
    by_name = b"\x0c\x0a\x0ashop.Order"
    assert found.open(b"\x00" + struct.pack(">Q", 8) + by_name + data).value == order
    for wrong in (b"\x02\x0a" + data, b"\x02", b"\xff\xff\xff\xff\x0f", b"\x02\x02\xff"):
        assert found.open(framed(8, wrong)).problem is not None


@cases(
    "text",
    [
        b"",
        b"message",
        b"message M { Nobody n = 1; }",
        b"\xff",
        b"message M { int32 a = 0; }",
        b"message M {" * 5000,
        b"message M {" * 970 + b"}" * 970,
        b"message M {" * 102 + b"}" * 102,
    ],
)
def test_a_proto_file_that_is_none_is_a_finding(text: bytes) -> None:
    with pytest.raises(UnreadableError):
        make_schema(SchemaText(PROTOBUF_TEXT, text))


def _nested(levels: int) -> bytes:
    data = b""
    for _ in range(levels):
        data = b"\x0a" + uvarint_bytes(len(data)) + data
    return data


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (_nested(3000), "another schema wrote it"),
        (b"\x0a\x00" * 250_000, "more than 200,000 values"),
        (b"\x12\xff\xff\xff\xff\x07" + b"t", "another schema wrote it"),
        (b"\x08\x01\x15\x00\x00\x00\x00", "2 fields that M does not have"),
    ],
)  # fmt: skip
def test_protobuf_that_lies_recurses_or_explodes_is_a_finding(data: bytes, words: str) -> None:
    schema = SchemaText(PROTOBUF_TEXT, b'syntax = "proto3"; message M { repeated M m = 1; string t = 2; }')
    found = opener(s9=schema).open(framed(9, b"\x00" + data)).problem
    assert found is not None
    assert words in found.message


def test_a_proto_file_is_a_descriptor() -> None:
    made = parse_proto("message A { optional .B b = 1; oneof c { string d = 2; } } message B {}", "a.proto")
    assert made.message_type[0].field[0] == descriptor_pb2.FieldDescriptorProto(
        name="b", number=1, label=1, type_name=".B"
    )
    assert made.message_type[0].field[1].oneof_index == 0


def test_schemas_in_a_folder_are_found_by_id_subject_and_name(tmp_path: Path) -> None:
    line = {"type": "record", "name": "Line", "namespace": "shop", "fields": [{"name": "n", "type": "int"}]}
    order = {"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "l", "type": "Line"}]}
    (tmp_path / "shop.Line.avsc").write_text(json.dumps(line))
    (tmp_path / "7.avsc").write_text(json.dumps(order))
    (tmp_path / "orders-value.avsc").write_text(json.dumps(order))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b.proto").write_text("syntax = 'proto3'; message B { int32 n = 1; }")
    (tmp_path / "8.proto").write_text("syntax = 'proto3'; import 'sub/b.proto'; message A { B b = 1; }")
    found = opener_with(str(tmp_path))
    assert found.open(framed(7, b"\x02")).value == {"l": {"n": 1}}
    assert found.open(b"\x02", "orders").value == {"l": {"n": 1}}
    assert found.open(b"tea", "else").value == "tea"
    assert found.open(framed(8, b"\x00\x0a\x02\x08\x05")).value == {"b": {"n": 5}}
    assert "not among" in found.open(framed(99, b"")).problem.message
    assert found.open(b"\x02", "../7").form == "bytes", "a topic is no path"


def test_a_folder_without_schemas_is_said(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", "http://"):
        with pytest.raises(SchemaLocationError):
            opener_with(str(place))


def test_without_the_libraries_a_plain_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import dissector.records.values.schemas as location

    monkeypatch.setattr(location, "find_spec", lambda _: None)
    with pytest.raises(SchemaLocationError, match=r"pip install 'kafka-dissector\[schemas\]'"):
        opener_with(str(tmp_path))


def test_envelopes_are_named() -> None:
    debezium = {"before": None, "after": {}, "source": {}, "op": "c"}
    assert envelope(debezium) == "Debezium create"
    assert envelope({"schema": None, "payload": 1}) == "Connect"
    assert envelope({"schema": {}, "payload": debezium}) == "Connect, Debezium create"
    assert envelope({"payload": 1}) == envelope([]) == ""


def test_a_traceparent_is_explained() -> None:
    words = header_words("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    assert words == "trace 4bf92f3577b34da6a3ce929d0e0e4736, span 00f067aa0ba902b7, sampled"
    assert header_words("traceparent", b"00-0") == "not a valid traceparent"
    assert header_words("tenant", b"x") == ""


def served(answers: dict[str, bytes | int | str]) -> Callable[..., object]:
    """A registry on loopback: contents, statuses and addresses to go on to by path."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    asked: list[tuple[str, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization")))
            answer = answers.get(self.path, 404)
            self.send_response(answer if isinstance(answer, int) else 302 if isinstance(answer, str) else 200)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else b"{}")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    return server, asked


def test_a_registry_is_asked_once_for_each_id() -> None:
    line = {"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "l", "type": "shop.Line"}]}
    answers = {
        "/schemas/ids/7": json.dumps({
            "schema": json.dumps(order), "references": [{"name": "shop.Line", "subject": "li/ne", "version": 2}],
        }).encode(),
        "/subjects/li%2Fne/versions/2": json.dumps({"schema": json.dumps(line)}).encode(),
        "/schemas/ids/8": json.dumps({"schema": PROTO.decode(), "schemaType": "PROTOBUF"}).encode(),
        "/schemas/ids/9": b"<html>", "/schemas/ids/10": 500,
        "/apis/registry/v2/ids/globalIds/5": json.dumps(line).encode(),
    }  # fmt: skip
    server, asked = served(answers)
    try:
        found = opener_with(f"http://user:pass%20word@127.0.0.1:{server.server_port}/")
        for _ in range(2):
            assert found.open(framed(7, b"\x02")).value == {"l": {"n": 1}}
            assert found.open(framed(8, b"\x00\x08\x07")).value == {"id": 7}
            assert found.open(b"\x00" + struct.pack(">Q", 5) + b"\x02").value == {"n": 1}
            messages = [found.open(framed(n, b"")).problem.message for n in (9, 10, 11)]
        assert [path for path, _ in asked] == [
            "/schemas/ids/7", "/subjects/li%2Fne/versions/2", "/schemas/ids/8", "/apis/registry/v2/ids/globalIds/5",
            "/schemas/ids/9", "/schemas/ids/10", "/schemas/ids/11",
        ]  # fmt: skip
        assert {authorization for _, authorization in asked} == {"Basic dXNlcjpwYXNzIHdvcmQ="}
        assert "not a JSON object" in messages[0]
        assert "answers 500" in messages[1]
        assert "not among" in messages[2]
        assert "pass" not in "".join(messages)
    finally:
        server.shutdown()
        server.server_close()


def test_a_password_is_not_sent_to_where_a_registry_redirects() -> None:
    schema = json.dumps({"schema": json.dumps({"type": "record", "name": "N", "fields": []})}).encode()
    other, asked_there = served({"/elsewhere": schema})
    server, asked = served({"/schemas/ids/7": f"http://127.0.0.1:{other.server_port}/elsewhere"})
    try:
        found = opener_with(f"http://user:secret@127.0.0.1:{server.server_port}").open(framed(7, b""))
        assert found.value == {}
        assert asked[0][1].startswith("Basic ")
        assert asked_there == [("/elsewhere", None)]
        for login, is_followed in (("user:secret@", False), ("", True)):
            there = served({"/schemas/ids/7": f"http://localhost:{other.server_port}/elsewhere"})[0]
            found = opener_with(f"http://{login}127.0.0.1:{there.server_port}").open(framed(7, b""))
            assert (found.problem is None) == is_followed, found.problem
            there.shutdown()
            there.server_close()
        assert len(asked_there) == 2
    finally:
        for each in (server, other):
            each.shutdown()
            each.server_close()


@cases("sent", [
    [b"HTTP/1.0 200 OK\r\n", *[b"X: y\r\n"] * 80], [b"HTTP/1.1 100 Continue\r\n\r\n"] * 80,
    [b"HTTP/1.0 200 OK\r\n\r\n", *[b" "] * 80], [b"H"] * 80, [],
])  # fmt: skip
def test_a_registry_that_drips_is_given_up(sent: list[bytes]) -> None:
    """Bytes come before each wait ends, and for longer than a schema may take."""
    ended = Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                for part in sent:
                    connection.sendall(part)
                    if ended.wait(0.05):
                        return
                ended.wait(20)

        Thread(target=drip, daemon=True).start()
        registry = SchemaRegistry(f"http://127.0.0.1:{server.getsockname()[1]}", replace(DEFAULT, registry_seconds=0.3))
        with pytest.raises(UnreadableError, match="timed out"):
            registry.text(SchemaKey(ID, "7"))
        assert not ended.is_set()
        ended.set()


def test_a_schema_and_all_that_it_refers_to_have_one_time_limit() -> None:
    references = [{"name": f"n{at}", "subject": f"s{at}", "version": 1} for at in range(60)]
    answer = json.dumps({"schema": '"int"', "references": references}).encode()

    class Slow(dict[str, object]):
        def get(self, path: str, _otherwise: object = None) -> object:
            sleep(0.05)
            return answer

    server, asked = served(Slow())
    try:
        registry = SchemaRegistry(f"http://127.0.0.1:{server.server_port}", replace(DEFAULT, registry_seconds=0.3))
        with pytest.raises(UnreadableError, match="timed out"):
            registry.text(SchemaKey(ID, "7"))
        assert 1 < len(asked) < 12
    finally:
        server.shutdown()
        server.server_close()


def test_a_registry_redirects_to_nothing_but_http() -> None:
    server, _ = served({"/schemas/ids/7": "ftp://127.0.0.1/x", "/schemas/ids/8": "file:///etc/passwd"})
    try:
        found = opener_with(f"http://127.0.0.1:{server.server_port}")
        assert "redirects to ftp://127.0.0.1" in found.open(framed(7, b"")).problem.message
        assert "is not allowed" in found.open(framed(8, b"")).problem.message
    finally:
        server.shutdown()
        server.server_close()


def test_a_registry_that_is_not_there_is_asked_three_times() -> None:
    found = opener_with("http://127.0.0.1:1")
    messages = [found.open(framed(n, b"")).problem.message for n in range(1, 6)]
    assert "127.0.0.1:1" in messages[0]
    assert "not asked again" in messages[3]
