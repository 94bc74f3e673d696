"""A field's plain value by its path in the tree."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from dissector.capture_session import Capture
from dissector.exchange.field_paths import ABSENT, value_at
from tests.conftest import PCAPS, some_bundled


@pytest.fixture
def java() -> Iterator[Capture]:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        yield capture


MOST = 25
"""So many fields of a message are looked at: a path is looked up from the root each time."""


@pytest.mark.slow
@some_bundled
def test_a_leaf_of_the_tree_has_the_value_that_is_at_its_path(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        seen = 0
        for exchange in capture.exchanges():
            for message in (exchange.request, exchange.response):
                if message is None or message.layout.body is None or message.findings:
                    continue
                nodes = list(message.tree.walk())
                for node in nodes[:: 1 + len(nodes) // MOST]:
                    value = value_at(message, node.path)
                    if (
                        node.schema is not None
                        and not node.children
                        and node.value is not None
                        and not node.type.endswith("RECORDS")
                    ):
                        assert value == node.value, node.path
                        seen += 1
        assert seen or not len(capture)


def test_a_record_of_a_compressed_batch_has_its_value(java: Capture) -> None:
    compressed = 0
    for exchange in java.exchanges():
        if exchange.request is None or exchange.fields.api != "Produce":
            continue
        for node in exchange.request.tree.walk():
            if node.source and node.name == "value" and ".headers" not in node.path:
                assert value_at(exchange.request, node.path) == node.value
                compressed += 1
    assert compressed


def test_what_only_the_wire_has_is_absent(java: Capture) -> None:
    exchange = next(e for e in java.exchanges() if e.request is not None)
    assert exchange.request is not None
    for path in ("body.(tagged fields)", "body.nothing", "body[0]", "header.client_id.x", "size"):
        assert value_at(exchange.request, path) is ABSENT, path
    assert value_at(exchange.request, "")["header"] == exchange.request.header
