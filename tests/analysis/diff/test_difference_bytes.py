"""The bytes behind a difference: those of the field, in an exchange that shows it."""

import pytest

from dissector.analysis.diff import DiffResult
from dissector.analysis.diff.report import diff_report
from dissector.analysis.rendering import render_html, render_text
from tests.analysis.diff.editing import bundled, compared, side

PAIRS = [("java-1", "librdkafka-1"), ("kafka-python-1", "aiokafka-1")]


def both(a: str, b: str) -> DiffResult:
    return compared(bundled(f"compare-{a}"), bundled(f"compare-{b}"))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_bytes_are_where_the_message_has_the_field(a: str, b: str) -> None:
    captures = {"A": side(bundled(f"compare-{a}")).capture, "B": side(bundled(f"compare-{b}")).capture}
    result = both(a, b)
    shown = 0
    for entry in result.entries:
        for each in result.field_bytes(entry):
            exchange = captures[each.side].exchange(each.row)
            message = exchange.request if each.part == "request" else exchange.response
            assert message is not None
            assert message.data[each.start : each.start + len(each.data)] == each.data
            if each.path:
                last = each.path.rpartition(".")[2].partition("[")[0]
                assert any((node.start, node.size) == (each.start, len(each.data)) and node.name.startswith((last, "["))
                           for node in message.tree.walk())  # fmt: skip
            else:
                assert each.value == f"v{int.from_bytes(each.data, 'big')}"
            shown += 1
    assert shown >= len(result.entries)


def test_fields_of_one_byte_differ_in_it() -> None:
    result = both("java-1", "librdkafka-1")
    [entry] = [each for each in result.entries if (each.api, each.path) == ("Fetch", "isolation_level")]
    a, b = result.field_bytes(entry)
    assert (a.side, a.data, b.side, b.data) == ("A", b"\0", "B", b"\1")


@pytest.mark.long
def test_a_page_folds_them_and_text_leaves_them_out() -> None:
    result = both("java-1", "librdkafka-1")
    page = "\n".join(render_html(diff_report(result, with_bytes=True)))
    assert page.count("<details>") >= 10
    assert "B, exchange 25: request.isolation_level = 1" in page
    assert "<script" not in page
    assert "http" not in page
    assert "bytes 34" not in "\n".join(render_text(diff_report(result, with_bytes=True)))
