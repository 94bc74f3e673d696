"""The grammar: what binds to what, and that any text at all ends in a tree or in an error at a place of the text."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.filter import FilterError, complete, parse
from dissector.filter.grammar import DEEPEST, LONGEST, ComparisonSyntax, read
from tests.cases import cases
from tests.filter.evaluation import exchanges, matching_rows, opened

WORDS = [
    "api", "latency", "error", "topic", "request.topics.name", "error_code", "records.key", "max_wait_ms", "&&", "||",
    "!", "and", "or", "not", "(", ")", "{", "}", ",", "==", "!=", "<", "<=", ">", ">=", "contains", "matches", "in",
    "exists", "Fetch", "50ms", "8KiB", "-1", "10..20", '"a b"', "'x'", "null", "true", "0x00ff", "(a+)+$", '"', "\\",
    "=", "&", "|", ".", "request.", "response.", "request.header.client_id", "metadata_decoded.topics", "time",
    "2026-01-31T12:00:00Z", "1e999", "C3", "é", "\x1b",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.slow
@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join) | st.lists(st.sampled_from(WORDS)).map("".join))
@example("!" * 5_000 + "api")
@example("(" * 20_000 + "api" + ")" * 20_000)
@example("api&&(" * 2_000 + "api" + ")" * 2_000)
@example("(" * 60_000)
@example("latency == " + "9" * 60_000)
@example("client_id matches " + "(" * 1_000)
@example("client_id matches a{1000}{1000}{1000}")
@example("x" * (LONGEST + 1))
def test_any_text_is_a_filter_or_an_error_at_a_place_of_it(text: str) -> None:
    error = error_of(text)
    if error is not None:
        assert 0 <= error.column <= len(text)
        assert error.text == text
        assert str(error).isprintable()
        assert str(error).startswith(f"column {error.column + 1}: ")
    for cursor in {0, len(text) // 2, len(text)} if len(text) < 1_000 else ():
        for found in complete(text, cursor):
            assert 0 <= found.start <= cursor <= found.end <= len(text)


def error_of(text: str) -> FilterError | None:
    try:
        parse(text)
    except FilterError as error:
        return error
    return None


ATOMS = {
    "api == Fetch": lambda each: each.fields.api == "Fetch",
    "latency > 3ms": lambda each: (each.fields.latency_ns or 0) > 3_000_000,
    "corr < 5": lambda each: each.fields.correlation_id < 5,
    "exists response": lambda each: each.response is not None,
    "error": lambda each: any(finding.code == "error-response" for finding in each.findings),
}
Tree = Any


def trees() -> st.SearchStrategy[Tree]:
    leaf = st.sampled_from(sorted(ATOMS))
    return st.recursive(leaf, lambda inner: st.tuples(st.just("not"), inner) | st.tuples(
        st.sampled_from(["and", "or"]), inner, inner))  # fmt: skip


def written(tree: Tree, spelling: dict[str, str], level: int = 0) -> str:
    """The tree with as few parentheses as what binds to what allows."""
    if isinstance(tree, str):
        return tree
    if tree[0] == "not":
        return f"{spelling['not']} {written(tree[1], spelling, 2)}"
    own = 1 if tree[0] == "and" else 0
    text = f"{written(tree[1], spelling, own)} {spelling[tree[0]]} {written(tree[2], spelling, own)}"
    return f"({text})" if own < level else text


def meant(tree: Tree, exchange: Any) -> bool:
    if isinstance(tree, str):
        return bool(ATOMS[tree](exchange))
    if tree[0] == "not":
        return not meant(tree[1], exchange)
    first, second = (meant(part, exchange) for part in tree[1:])
    return first and second if tree[0] == "and" else first or second


@given(trees(), st.sampled_from([{"and": "&&", "or": "||", "not": "!"}, {"and": "AND", "or": "or", "not": "not"}]))
def test_not_binds_closer_than_and_and_that_closer_than_or(tree: Tree, spelling: dict[str, str]) -> None:
    text = written(tree, spelling)
    expected = [n for n, each in enumerate(exchanges("java")) if meant(tree, each)]
    capture = opened("java")
    assert matching_rows(text, capture) == expected


def test_nothing_is_a_keyword_behind_an_operator() -> None:
    tree = read("client_id == not && client_id in {and, or} && nothing == exists")
    assert [part.values[0].text for part in tree.parts if isinstance(part, ComparisonSyntax)] == [
        "not",
        "and",
        "exists",
    ]


@cases(
    ("text", "column", "near"),
    [
        ("", 0, ()),
        ("api = Fetch", 4, ("==",)),
        ("api & error", 4, ("&&",)),
        ("api ==", 6, ("a value",)),
        ("(api", 4, (")",)),
        ("api)", 3, ()),
        ('client_id == "a', 13, ()),
        ("api in {Fetch", 13, ("}", ",")),
        ("api in {}", 8, ("a value",)),
        ("api == Fetch latency", 13, ("||", "&&")),
        ("== 3", 0, ("(", "a name")),
        ("api eq Fetch", 4, ("==",)),
        ("latency ge 5ms", 8, (">=",)),
        ("latency > 5.1 ms && api", 14, ("5.1ms",)),
        ("size > 1 MiB", 9, ("1MiB",)),
        ("topic == 5 x", 11, ("||", "&&")),
    ],
)
def test_a_syntax_error_is_reported_at_its_column(text: str, column: int, near: tuple[str, ...]) -> None:
    with pytest.raises(FilterError) as found:
        read(text)
    assert found.value.column == column
    assert found.value.near[: len(near)] == near
    assert bool(found.value.near) == bool(near)


def test_depth_that_means_something_is_bounded() -> None:
    nested = "api || (api && (" * (DEEPEST // 2 + 1) + "api" + "))" * (DEEPEST // 2 + 1)
    with pytest.raises(FilterError, match="levels"):
        parse(nested)


@given(st.text(st.characters(codec="utf-8")))
def test_a_quoted_value_is_any_text(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    tree = read(f'client_id == "{quoted}"')
    assert isinstance(tree, ComparisonSyntax)
    assert tree.values[0].text == value


@pytest.mark.long
@cases(
    ("text", "near"),
    [
        ("error_code == FOO", ()), ("error_code == NOT_COORDINATR", ("NOT_COORDINATOR",)),
        ("severity == x", ("note", "warning", "error")),
    ],
)  # fmt: skip
def test_of_many_names_only_similar_ones_are_suggested(text: str, near: tuple[str, ...]) -> None:
    with pytest.raises(FilterError) as found:
        parse(text)
    assert found.value.near[: len(near) or None] == near
