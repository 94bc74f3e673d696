"""Keys and values opened: whatever the bytes and the schemas are, there is a value or a finding, in bounded time."""

import io
import json
import re
import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.core.extras import install_command
from dissector.core.limits import DEFAULT, Limits
from dissector.core.text import HOSTILE
from dissector.protocol.records.batch import RecordHeader
from dissector.records.record import ExchangeRecord
from dissector.records.record_text import pretty_text, record_object, value_text
from dissector.records.values.avro import parse_avro
from dissector.records.values.opened import UnreadableError
from dissector.records.values.opener import ValueOpener, envelope
from dissector.records.values.schemas import (
    AVRO_SCHEMA,
    PROTOBUF_TEXT,
    SchemaLocationError,
    SchemaText,
    opener_with,
)
from dissector.records.values.trace_context import header_words
from tests.cases import cases
from tests.records.given import avro, framed, opener

PLAIN = ValueOpener()
SELF = {"type": "record", "name": "N", "fields": [{"name": "next", "type": ["null", "N"]}]}
LONG_NAMED = {"type": "record", "name": "R", "fields": [{"name": "n" * 100_000, "type": "null"}]}


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


@pytest.mark.long
@cases(
    ("schema", "data", "words"),
    [
        (SELF, b"\x02" * 100_000, "more than 100 levels deep"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 200,000 values"),
        ({"type": "array", "items": "null"}, b"\x01\x02" * 9, "number"),
        ("string", b"\xfe\xff\xff\xff\x0f", "a length of"),
        ("int", b"\xff" * 20, "a number of more than 64 bits"),
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

    monkeypatch.setattr(location, "is_installed", lambda _: False)
    with pytest.raises(SchemaLocationError, match=re.escape(install_command("schemas"))):
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
