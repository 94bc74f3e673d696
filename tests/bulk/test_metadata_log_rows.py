"""Rows with records of the metadata log, damaged or not, look the same read one by one and many at once."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.capture_session import Capture
from tests.bulk import test_info_texts, test_json_lines
from tests.bulk.test_info_texts import opened
from tests.conftest import PCAPS, costly
from tests.exchange.test_metadata_fetches import LOG_ID, fetch
from tests.protocol.test_metadata_log import with_checksums
from tests.traffic import Turn, capture_of, conversation

LOGIN = dissector.encode_request("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0hunter2"}, correlation_id=1)
TOGETHER = 8
HEADER = 12
"""Bytes of a frame that damage spares: its size, and what pairs a response with its request."""
Damage = list[tuple[int, int]]


@cache
def fetches() -> list[tuple[bytes, bytes]]:
    """Requests for the metadata log, by its id and by its name, and their responses, with their secrets."""
    found = []
    for name in ("kraft-quorum", "two-brokers"):
        with Capture([str(PCAPS / f"{name}.pcapng")], show_secrets=True) as capture:
            found += [
                (each.request.data, each.response.data)
                for each in capture.exchanges("api == Fetch")
                if each.request and each.response and each.response.context.fetches_metadata
            ]
    for version in (9, 12, 13):
        request, response = fetch(version, "__cluster_metadata", LOG_ID, b"v")
        found += [(request.data, response.data)] * TOGETHER
    return found


def damaged(frame: bytes, damage: Damage, number: int, *, is_request: bool) -> bytes:
    """A frame with other bytes in some places, its correlation id and its batches' checksums in order."""
    data = bytearray(frame)
    at = 8 if is_request else 4
    data[at : at + 4] = number.to_bytes(4, "big")
    for place, value in damage:
        data[HEADER + place % (len(data) - HEADER)] = value
    return with_checksums(data)


damages = st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=4)


@pytest.mark.long
@pytest.mark.slow
@costly(15)
@given(
    first=st.integers(0, 1 << 16),
    damage=st.lists(st.tuples(damages, damages), min_size=TOGETHER, max_size=TOGETHER),
    has_login=st.booleans(),
)
def test_rows_are_those_that_are_decoded(
    first: int, damage: list[tuple[Damage, Damage]], has_login: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    turns = [Turn(True, LOGIN)] if has_login else []
    start = first % (len(fetches()) - TOGETHER)
    some = zip(fetches()[start : start + TOGETHER], damage, strict=True)
    for number, ((request, response), (asked, answered)) in enumerate(some, 2):
        turns.append(Turn(True, damaged(request, asked, number, is_request=True)))
        turns.append(Turn(False, damaged(response, answered, number, is_request=False)))
    path = tmp_path_factory.mktemp("log")
    capture = opened(path / capture_of(path, conversation(turns)))
    test_info_texts.check(capture)
    test_json_lines.check(capture)


def test_most_rows_of_a_quorum_need_no_careful_look() -> None:
    capture = opened(PCAPS / "kraft-quorum.pcapng")
    assert test_info_texts.check(capture) == len(capture)  # also of snapshots and envelopes
    assert test_json_lines.check(capture) > 0.9 * len(capture)
