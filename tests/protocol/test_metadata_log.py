"""Responses that surely have no secret of the metadata log are those in which a trace finds none."""

from dataclasses import replace
from functools import cache

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.exchange.metadata_fetches import fetches_metadata
from dissector.exchange.model import ExchangeMessage
from dissector.protocol import masking, metadata_log
from dissector.protocol.codec.writer import write
from dissector.protocol.embedded.context import EMPTY_CONTEXT
from dissector.protocol.embedded.secrets import names_metadata_log
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.masking import mask_secrets
from dissector.protocol.message_layout import request_layout, response_layout
from dissector.protocol.metadata_log import is_of_other_topics, without_secrets
from dissector.protocol.records.batch import CRC_FROM, HEADER
from dissector.protocol.records.entries import RecordsEntryKind, split_entries
from tests.conftest import PCAPS
from tools.fuzz.seeds import framed

BODIES = ("FetchResponse", "FetchSnapshotResponse")
CONTEXT = replace(EMPTY_CONTEXT, fetches_metadata=True, may_have_secrets=True)


@cache
def responses() -> list[ExchangeMessage]:
    """Responses of recordings with records of the metadata log, with their secrets; those with most records last."""
    found = []
    for name in ("kraft-quorum", "two-brokers", "java-streams"):
        with Capture([str(PCAPS / f"{name}.pcapng")], show_secrets=True) as capture:
            messages = [each.response for each in capture.exchanges() if each.response is not None]
            found += [each for each in messages if each.layout.body in BODIES and each.context.fetches_metadata]
    return sorted({each.data[8:]: each for each in found}.values(), key=lambda each: len(each.data))


def is_sure(message: ExchangeMessage, data: bytes) -> bool:
    """Whether a response surely has no secret; a trace has to find none then."""
    decoded = without_secrets(data, message.layout, CONTEXT)
    if decoded is None:
        return False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "without_secrets", lambda *_: None)
        traced = mask_secrets(data, len(data), message.layout, len(data), CONTEXT)
    assert traced.data == data
    assert traced.layout == message.layout
    return True


def with_checksums(data: bytearray) -> bytes:
    """A frame whose batches have the checksums of their bytes: those that begin where a magic is."""
    for at in range(len(data) - HEADER.size):
        entry = next(split_entries(bytes(data[at:])))
        if entry.kind is RecordsEntryKind.BATCH:
            checked = bytes(data[at + CRC_FROM : at + entry.end])
            data[at + CRC_FROM - 4 : at + CRC_FROM] = google_crc32c.value(checked).to_bytes(4, "big")
    return bytes(data)


def test_most_responses_of_a_quorum_are_sure() -> None:
    sure = [is_sure(message, message.data) for message in responses()]
    assert sum(sure) > 0.8 * len(sure)


@given(number=st.integers(0, 1 << 16), places=st.lists(st.tuples(st.integers(12), st.integers(0, 255)), max_size=3))
def test_damage_with_right_checksums_hides_no_secret(number: int, places: list[tuple[int, int]]) -> None:
    message = responses()[number % len(responses())]
    data = bytearray(message.data)
    for at, value in places:
        data[12 + at % (len(data) - 12)] = value
    is_sure(message, with_checksums(data))


def test_other_topics_are_left_to_the_trace() -> None:
    message = responses()[0]
    assert without_secrets(message.data, message.layout, EMPTY_CONTEXT) is None


@pytest.mark.parametrize("topic", ["orders", CLUSTER_METADATA])
@pytest.mark.parametrize("version", [11, 16])
def test_in_a_response_that_was_cut_numbers_are_no_id_of_the_log(topic: str, version: int) -> None:
    """A high watermark of 0, error code 0 and 1 aborted transaction read like the log's topic id."""
    by_id = {"topic_id": CLUSTER_METADATA_ID if topic == CLUSTER_METADATA else "5qmCrfuuTBeQg_yx_5kkAA"}
    partition = {
        "high_watermark": 0, "last_stable_offset": 0, "log_start_offset": 0,
        "aborted_transactions": [{"producer_id": 7}], "records": b"teapot",
    }  # fmt: skip
    body = {"responses": [({"topic": topic} if version < 13 else by_id) | {"partitions": [partition]}]}
    data = framed("response", 1, version, write("FetchResponse", version, body))
    layout = response_layout(1, version, data)
    is_public = topic == "orders"
    for cut in range(3, 40):
        end = len(data) - cut
        is_other = is_of_other_topics(data[:end], layout, end, EMPTY_CONTEXT, is_whole=False)
        assert is_other is is_public
        found = mask_secrets(data[:end], len(data), layout, end, EMPTY_CONTEXT)
        assert (found.data == data[:end]) is is_public
    damaged = data[:-7] + b"\xff" * 7
    assert not is_of_other_topics(damaged, layout, len(data), EMPTY_CONTEXT, is_whole=True)


def test_in_a_request_that_was_cut_numbers_are_no_id_of_the_log() -> None:
    for topic, is_log in (("orders", False), (CLUSTER_METADATA, True)):
        partition = {"partition": 0, "current_leader_epoch": 0, "fetch_offset": 1}
        values = {"topics": [{"topic": topic, "partitions": [partition] * 3}]}
        data = framed("request", 1, 11, write("FetchRequest", 11, values))
        assert names_metadata_log(data)
        for cut in range(4, 40):
            kept = data[:-cut]
            message = ExchangeMessage(0, len(data), kept, len(kept), request_layout(1, 11, kept))
            assert fetches_metadata(message) is is_log


def test_a_large_response_is_left_to_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    message = next(each for each in responses() if is_sure(each, each.data))
    monkeypatch.setattr(metadata_log, "LARGEST", len(message.data) - 1)
    assert not is_sure(message, message.data)
