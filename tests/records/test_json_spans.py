"""Members of a text that is JSON, and their bytes."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.records.values.json_spans import DEEPEST, MOST_BYTES, MOST_MEMBERS, JsonMember, json_members
from tests.cases import cases

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def value_of(member: JsonMember) -> Any:
    if member.kind == "object":
        return {each.name: value_of(each) for each in member.children}
    if member.kind == "array":
        return [value_of(each) for each in member.children]
    return float(member.value) if isinstance(member.value, Decimal) else member.value


@pytest.mark.long
@given(st.lists(VALUES, max_size=3) | st.dictionaries(st.text(), VALUES, max_size=3), st.booleans(), st.booleans())
def test_each_member_has_its_value_and_its_bytes(value: Any, is_ascii: bool, is_indented: bool) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1 if is_indented else None)
    try:
        data = f" {text}\n".encode()
    except UnicodeEncodeError:  # lone surrogates can't be in UTF-8
        return
    members = json_members(data)
    assert members is not None
    whole = JsonMember("", 0, len(data), None, "object" if isinstance(value, dict) else "array", members)
    assert value_of(whole) == json.loads(text)
    stack = [whole]
    while stack:
        member = stack.pop()
        for each in member.children:
            assert member.start <= each.start < each.end <= member.end
            assert json.loads(data[each.start : each.end]) == value_of(each)
            stack.append(each)


@cases(
    "text",
    [
        "", "{", "[1", "[1,]", '{"a"}', '{"a":}', '{"a":1,}', "{a:1}", "[1] 2", "[01]", "[+1]", "[NaN]", "[tru]", "3",
        '"text"', "null", "[1 2]", '["\n"]', "[1}", '{"a":1]', "\ufeff[1]", "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        f"[{'0,' * MOST_MEMBERS}0]", "[" + " " * MOST_BYTES + "]",
    ],
)  # fmt: skip
def test_other_texts_are_no_json(text: str) -> None:
    assert json_members(text.encode()) is None


def test_bounds_are_reached_and_digits_and_repeated_names_kept() -> None:
    assert json_members(b"[" * DEEPEST + b"]" * DEEPEST) is not None
    assert json_members(b"[" + b"0," * (MOST_MEMBERS - 2) + b"0]") is not None
    assert json_members(b"[" + b" " * (MOST_BYTES - 2) + b"]") == ()
    found = json_members(b'{"a": 1.50, "a": 123456789012345678901, "": 1e999}')
    assert found is not None
    assert [(each.name, str(each.value)) for each in found] == [
        ("a", "1.50"), ("a", "123456789012345678901"), ("", "1E+999"),
    ]  # fmt: skip


def test_bytes_that_are_no_utf_8_are_no_json() -> None:
    assert json_members(b'["\xff"]') is None
