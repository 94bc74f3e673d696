"""Rules for message findings may depend on any field: the column of findings has what decoding each row gives."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dissector.capture_session import Capture
from dissector.core.finding import Finding, Severity
from dissector.exchange import message_rules
from dissector.exchange.message_findings import Find, MessageRules, ReadFields, UndeclaredFieldError, field_reads
from dissector.exchange.to_json import json_line
from dissector.filter import parse
from dissector.filter.column_evaluation import YES
from dissector.filter.selection import evaluate_index
from tests.cases import cases
from tests.conftest import PCAPS

NAMES = ("compare-java-1", "java-kip848", "kafka-python", "trouble-consumer-lag", "two-brokers")
ODD = "retried-batch"
"""An explained code that no message rule has: filters know it."""
BASE_OFFSET = "response.responses.partition_responses.base_offset"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> MessageRules:
    """A copy of the registry, in use; so few rows are looked at together that most of a capture has templates."""
    monkeypatch.setattr("dissector.findings.message_column.TOGETHER", 4)
    copied = message_rules.MESSAGE_RULES.copy()
    monkeypatch.setattr(message_rules, "MESSAGE_RULES", copied)
    return copied


def odd_epoch(fields: ReadFields) -> Iterator[Finding]:
    for epoch in fields.values("request.session_epoch"):
        if isinstance(epoch, int) and epoch % 2:
            yield fields.finding(f"session epoch {epoch} is odd", "request.body.session_epoch")


def long_client_id(fields: ReadFields) -> Iterator[Finding]:
    for client in fields.values("request.header.client_id"):
        if str(client).endswith("1"):
            yield fields.finding("a client id that ends with 1")


def offsets_of_partition_0(fields: ReadFields) -> Iterator[Finding]:
    offsets = fields.values(BASE_OFFSET)
    timeout = fields.values("request.timeout_ms")
    if timeout and any(isinstance(offset, int) and offset % 3 == 0 for offset in offsets):
        yield fields.finding(f"an offset is a multiple of three, {timeout}", severity=Severity.ERROR)


def even_values_anywhere(fields: ReadFields) -> Iterator[Finding]:
    if any(isinstance(value, int) and value % 2 == 0 for value in fields.values("response.**.throttle_time_ms")):
        yield fields.finding("throttled for an even time")
    if any(isinstance(value, int) and value % 2 for value in fields.values("request.**.generation_id")):
        yield fields.finding("an odd generation", severity=Severity.WARNING)


RULES = [
    (odd_epoch, ("request.session_epoch",), ("Fetch",)),
    (long_client_id, ("request.header.client_id",), ()),
    (offsets_of_partition_0, (BASE_OFFSET, "request.timeout_ms"), ("Produce",)),
    (even_values_anywhere, ("response.**.throttle_time_ms", "request.**.generation_id"), ()),
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("rule", "reads", "apis"), RULES, ids=[rule.__name__ for rule, *_ in RULES])
def test_filters_and_decoding_agree_on_a_rule_that_depends_on_a_number(
    monkeypatch: pytest.MonkeyPatch,
    rules: MessageRules,
    name: str,
    rule: Find,
    reads: tuple[str, ...],
    apis: tuple[str, ...],
) -> None:
    rules.rule(ODD, Severity.NOTE, reads=reads, apis=apis)(rule)
    assert_agree(PCAPS / f"{name}.pcapng")


def assert_agree(path: Path) -> None:
    """JSON, exchanges and each of the filters have the same findings for every row."""
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        exchanges = list(capture.exchanges())
        expected = [ODD in {finding.code for finding in each.findings} for each in exchanges]
        assert [f'"{ODD}"'.encode() in json_line(each) for each in exchanges] == expected
        for _ in capture.findings.examine_messages(np.arange(len(capture))):
            pass
        answers = evaluate_index(parse(f"finding == {ODD}"), capture, range(len(capture)))
        assert (answers == YES).tolist() == expected
        gravest = evaluate_index(parse("severity == error"), capture, range(len(capture)))
        assert (gravest == YES).tolist() == [each.row.severity is Severity.ERROR for each in exchanges]


def test_a_rule_sees_what_it_declares_and_nothing_else(rules: MessageRules) -> None:
    rules.rule(ODD, Severity.NOTE, reads=("request.acks",))(odd_epoch)
    with Capture([str(PCAPS / "java.pcapng")]) as capture, pytest.raises(UndeclaredFieldError, match="session_epoch"):
        [each.findings for each in capture.exchanges()]


@cases("field", ["session_epoch", "request", "request.", "both.topics", "request..name"])
def test_a_rule_must_name_the_side_and_the_field(field: str) -> None:
    with pytest.raises(ValueError, match=r"write request\.FIELD"):
        field_reads((field,))


def test_a_copy_of_the_registry_leaves_the_original_alone(rules: MessageRules) -> None:
    before = len(list(rules))
    rules.copy().rule(ODD, Severity.NOTE, reads=("request.acks",))(odd_epoch)
    assert len(list(rules)) == before
