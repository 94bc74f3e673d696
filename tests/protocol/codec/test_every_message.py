"""Every version of every message: values as encoded, the tree's the same, every byte in a leaf, and written back."""

import random
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import ArrayPlan, FieldPlan, StructPlan, plan
from dissector.protocol.codec.reader import DECODE_ERRORS, reader
from dissector.protocol.codec.writer import default, write
from dissector.protocol.message import read, trace
from dissector.protocol.message_layout import PREFIX, MessageLayout
from dissector.protocol.schema.index import IndexEntry
from dissector.protocol.schema.loader import apis, entries
from dissector.protocol.wire import EncodeError
from tests.cases import cases
from tests.protocol.random_messages import make
from tests.protocol.trees import assert_tiled, same, values_of

MESSAGES = [entry for entry in entries() if entry.valid_versions]
HEADER = MessageLayout("ResponseHeader", 0, None, 0)


def framed(raw: bytes) -> bytes:
    return struct.pack(">ii", len(raw) + 4, 7) + raw


def check(name: str, version: int, chance: random.Random) -> None:
    values, raw = make(plan(name, version), chance)
    data = framed(raw)
    layout = MessageLayout("ResponseHeader", 0, name, version)
    decoded = read(data, layout)
    assert not decoded.findings
    assert decoded.body == values
    assert reader(name, version)(raw, 0, len(raw)) == (values, len(raw))
    traced = trace(data, layout)
    assert_tiled(traced)
    body = traced.tree.find("body")
    assert body is not None
    assert same(values_of(body), values)
    assert write(name, version, values) == raw


@pytest.mark.long
@pytest.mark.slow
@cases("entry", MESSAGES, ids=lambda entry: entry.name)
def test_made_messages_are_read_as_they_were_made(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        for seed in range(4):
            check(entry.name, version, random.Random(f"{entry.name} {version} {seed}"))


def test_every_version_of_every_api_has_a_reader(capsys: pytest.CaptureFixture[str]) -> None:
    pairs = [(api, version) for api in apis() for version in api.versions]
    for api, version in pairs:
        assert reader(api.request, version)
        assert reader(api.response, version)
    assert len(pairs) == 368


@given(entry=st.sampled_from(MESSAGES), data=st.data())
def test_damaged_messages_keep_every_byte_and_raise_nothing(entry: IndexEntry, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(list(entry.valid_versions)))
    _, raw = make(plan(entry.name, version), random.Random(data.draw(st.integers(0, 1000))))
    frame = bytearray(framed(raw))
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(PREFIX, len(frame) - 1), st.integers(0, 255)), max_size=4)
    ):
        frame[at] = byte
    cut = bytes(frame[: data.draw(st.integers(PREFIX, len(frame)))])
    layout = MessageLayout("ResponseHeader", 0, entry.name, version)
    read(cut, layout)
    assert_tiled(trace(cut, layout))


@given(entry=st.sampled_from(MESSAGES), junk=st.binary(max_size=200), data=st.data())
def test_the_reader_and_the_tracer_fail_on_the_same_bytes(entry: IndexEntry, junk: bytes, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from(list(entry.valid_versions)))
    try:
        reader(entry.name, version)(junk, 0, len(junk))
        readable = True
    except DECODE_ERRORS:
        readable = False
    findings = trace(framed(junk), MessageLayout("ResponseHeader", 0, entry.name, version)).findings
    assert readable == ("malformed" not in {finding.code for finding in findings})


def fields_of(struct: StructPlan) -> Iterator[FieldPlan]:
    for field in (*struct.fields, *struct.tagged):
        yield field
        inner = field.type.element if isinstance(field.type, ArrayPlan) else field.type
        if isinstance(inner, StructPlan):
            yield from fields_of(inner)


@cases("entry", MESSAGES, ids=lambda entry: entry.name)
def test_missing_values_are_written_as_defaults(entry: IndexEntry) -> None:
    for version in entry.valid_versions:
        raw = write(entry.name, version, {})
        values, end = reader(entry.name, version)(raw, 0, len(raw))
        assert end == len(raw)
        fields = plan(entry.name, version).fields
        assert values.keys() == {field.name for field in fields}
        for field in fields:
            if not isinstance(field.type, StructPlan) or field.type.nullable:
                assert values[field.name] == default(field)


def test_a_wrong_value_or_name_is_reported_with_its_path() -> None:
    with pytest.raises(EncodeError, match=r"^topics\[1\]\.partitions\[0\]\.partition: 'x' is not an integer"):
        write("FetchRequest", 4, {"topics": [{}, {"partitions": [{"partition": "x"}]}]})
    with pytest.raises(EncodeError, match=r"^topics\[0\]\.topic_id: no such field in this version"):
        write("FetchRequest", 4, {"topics": [{"topic_id": "A" * 22}]})
