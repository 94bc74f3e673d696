"""Follow keys are read from values and found by their bytes."""

from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.follow_keys import FollowKey, follow_keys
from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.protocol.tree import Node
from tests.cases import cases
from tests.conftest import PCAPS


def along(capture: Capture, thread: FollowKey) -> list[int]:
    """Return the rows that `first` finds, one after the other."""
    found, rows = [], np.arange(len(capture))
    while (number := thread.first(capture, rows)) is not None:
        found.append(number)
        rows = rows[rows > number]
    return found


def node_at(exchange: Exchange, path: str) -> Node | None:
    side, _, rest = path.partition(".")
    message = getattr(exchange, side)
    return message.tree.find(rest) if message is not None else None


@pytest.mark.slow
def test_the_bytes_find_every_exchange_with_a_key(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        rows: dict[FollowKey, list[int]] = {}
        for exchange in capture.exchanges():
            for thread in follow_keys(exchange):
                rows.setdefault(thread, []).append(exchange.row.number - 1)
        kinds: dict[str, int] = {}
        for thread, wanted in rows.items():
            kinds[thread.kind] = kinds.get(thread.kind, 0) + 1
            if kinds[thread.kind] < 4:
                assert along(capture, thread) == wanted, thread


@pytest.mark.long
@cases(
    ("capture", "kind"),
    [("java", "topic partition"), ("java", "group generation"), ("java", "member"), ("java", "fetch session"),
     ("java-transactions", "producer"), ("java-transactions", "transactional id"), ("java", "group"),
     ("librdkafka", "topic partition"), ("java-kip848", "group generation"), ("aiokafka", "correlation id")],
)  # fmt: skip
def test_captures_of_real_clients_have_every_kind_of_key(capture: str, kind: str) -> None:
    with Capture([str(PCAPS / f"{capture}.pcapng")]) as opened:
        found = [thread for exchange in opened.exchanges() for thread in follow_keys(exchange) if thread.kind == kind]
        assert found
        assert kind == "correlation id" or len(found) > len(set(found))


def test_a_partition_has_one_key_by_name_and_by_id() -> None:
    with Capture([str(PCAPS / "java.pcapng")]) as capture:
        by_api: dict[str, set[str]] = {}
        for exchange in capture.exchanges():
            labels = {t.label for t in follow_keys(exchange) if t.kind == "topic partition"}
            by_api.setdefault(exchange.row.api, set()).update(labels)
        assert by_api["Produce"] & by_api["Metadata"] & by_api["OffsetCommit"]


def test_the_path_of_a_key_leads_to_its_field(bundled: Path) -> None:
    with Capture([str(bundled)]) as capture:
        for exchange in list(capture.exchanges())[:40]:
            for thread in follow_keys(exchange)[:20]:
                if ".records." not in thread.path and not thread.path.endswith("group_id"):
                    assert node_at(exchange, thread.path) is not None, thread
