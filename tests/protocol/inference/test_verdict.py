"""What frames are taken for by themselves, and with what is known of their connection."""

import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.codec.plan import plan
from dissector.protocol.inference.evidence import NOTHING, InferenceEvidence
from dissector.protocol.inference.layouts import layouts
from dissector.protocol.inference.scoring import Scorer
from dissector.protocol.inference.verdict import Confidence, InferenceVerdict, ScoredResponse, infer, infer_response
from dissector.protocol.message import read
from dissector.protocol.message_layout import response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import alternatives, apis
from tests.calls import count_calls
from tests.cases import cases
from tests.traffic import response

THROTTLE_AND_ERROR = response(5, bytes(6))
TWINS = InferenceEvidence(seen={(ApiKey.LEAVE_GROUP, 1): 40.0})


def verdict(frame: bytes, evidence: InferenceEvidence = NOTHING) -> InferenceVerdict:
    return infer_response(frame, len(frame), len(frame), evidence)


def metadata_v1(topics: int = 1, flag: int = 0) -> bytes:
    """A response with one broker; each topic has one partition. `flag` is the boolean of every topic."""
    broker = struct.pack(">ih9sihi", 1, 9, b"kafka.lan", 9092, -1, 1)
    partition = struct.pack(">hiiiiii", 0, 0, 1, 1, 1, 1, 1)
    each = b"".join(struct.pack(">hh6sBi", 0, 6, b"t%05d" % n, flag, 1) + partition for n in range(topics))
    return response(9, struct.pack(">i", 1) + broker + struct.pack(">i", topics) + each)


def first(found: InferenceVerdict) -> tuple[str, int]:
    return found.candidates[0].layout.api.name, found.candidates[0].version


def test_every_version_of_every_response_is_in_one_layout_and_alternatives_in_one_more() -> None:
    have = [(each.api.key, version, each.other) for each in layouts() for version in each.versions]
    assert len(have) == len(set(have))
    assert set(have) == {
        (api.key, version, other)
        for api in apis()
        for version in api.versions
        for other in range(len(alternatives(api.response, version)) + 1)
    }


def test_a_distinctive_response_is_recognized_by_itself() -> None:
    found = verdict(metadata_v1())
    assert first(found) == ("Metadata", 1)
    assert found.confidence is Confidence.SURE


def test_a_boolean_is_0_or_1() -> None:
    bits = []
    for flag in (0, 1, 77):
        frame = metadata_v1(3, flag)
        weigher = Scorer(frame, 8, len(frame), math.inf, frozenset())
        weigher.message(plan("MetadataResponse", 1))
        bits.append(weigher.bits)
    assert bits[0] == bits[1] < bits[2] - 100


def test_a_throttle_time_and_an_error_are_never_sure() -> None:
    names = {each.layout.api.name for each in verdict(THROTTLE_AND_ERROR).candidates}
    assert {"Heartbeat", "LeaveGroup", "EndTxn"} <= names
    for evidence in (NOTHING, TWINS, InferenceEvidence(seen={(ApiKey.HEARTBEAT, 3): 3.0})):
        assert verdict(THROTTLE_AND_ERROR, evidence).confidence is not Confidence.SURE


def test_its_connection_decides_between_equal_layouts() -> None:
    assert first(verdict(THROTTLE_AND_ERROR)) == ("Heartbeat", 3)
    assert first(verdict(THROTTLE_AND_ERROR, TWINS)) == ("LeaveGroup", 1)


def test_what_the_broker_does_not_offer_is_not_taken() -> None:
    offered = {ApiKey.LEAVE_GROUP: (0, 1), ApiKey.METADATA: (0, 13)}
    assert first(verdict(THROTTLE_AND_ERROR, InferenceEvidence(offered=offered))) == ("LeaveGroup", 1)


def test_the_version_named_is_the_newest_that_the_broker_has() -> None:
    assert first(verdict(THROTTLE_AND_ERROR, InferenceEvidence(offered={ApiKey.HEARTBEAT: (0, 2)}))) == ("Heartbeat", 2)
    assert verdict(THROTTLE_AND_ERROR).candidates[0].layout.versions == (1, 2, 3)


def test_the_first_response_of_a_connection_is_mostly_apiversions() -> None:
    # ApiVersions v0 with one API, and Metadata-like bytes that others could be as well.
    frame = response(0, struct.pack(">hihhh", 0, 1, 3, 0, 13))
    assert first(verdict(frame, InferenceEvidence(first=True))) == ("ApiVersions", 0)


def test_a_frame_that_was_cut_off_is_recognized_by_its_beginning() -> None:
    frame = metadata_v1(50)
    found = infer_response(frame[:120], 120, len(frame), NOTHING)
    assert first(found) == ("Metadata", 1)


def test_bytes_of_no_kind_are_nothing() -> None:
    chance = random.Random(1)
    frames = [bytes(4) + chance.randbytes(size) for size in (9, 20, 40, 80, 300, 3000) for _ in range(20)]
    assert {verdict(frame).confidence for frame in frames} == {Confidence.NONE}


@pytest.mark.long
@pytest.mark.slow
def test_a_large_response_is_not_read_to_its_end_by_every_layout() -> None:
    frame = metadata_v1(5_000)
    assert first(verdict(frame)) == ("Metadata", 1)  # readers are made here
    once = count_calls(lambda: read(frame, response_layout(ApiKey.METADATA, 1, frame)))
    assert count_calls(lambda: verdict(frame)) < 20 * once, "of some two hundred layouts"


def test_a_large_response_must_end_where_its_frame_ends() -> None:
    frame = metadata_v1(2_000)
    assert "Metadata" not in {each.layout.api.name for each in verdict(frame + b"x").candidates}


@given(junk=st.binary(max_size=80), rest=st.integers(0, 40))
def test_any_bytes_have_shares_that_add_up(junk: bytes, rest: int) -> None:
    found = infer_response(bytes(4) + junk, len(junk) + 4, len(junk) + 4 + rest, NOTHING)
    shares = [each.share for each in found.candidates]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) <= 1.000001


@cases("size", range(8))
def test_frames_too_short_for_a_header_are_nothing(size: int) -> None:
    assert verdict(bytes(size)).confidence is Confidence.NONE


def test_a_large_frame_of_which_little_was_captured_is_survived() -> None:
    """It is far from anything that a layout would have: less likely than chance, by more than a float can say."""
    data = bytes.fromhex("0003000000000001000574657374730000000000000013000300000000000100057465737473") + bytes(4)
    infer_response(
        data,
        len(data),
        196_612,
        InferenceEvidence(seen={(ApiKey.METADATA, 0): 1.0}, elsewhere={(ApiKey.METADATA, 0): 1.0}),
    )


@given(
    data=st.binary(min_size=8, max_size=80) | st.lists(st.sampled_from([0, 0, 0, 1, 2]), min_size=8).map(bytes),
    keys=st.lists(st.sampled_from([ApiKey.METADATA, ApiKey.FETCH, ApiKey.HEARTBEAT]), max_size=2),
    whole=st.integers(8, 80),
    first=st.booleans(),
)
def test_what_was_scored_with_other_evidence_makes_no_difference(
    data: bytes, keys: list[ApiKey], whole: int, first: bool
) -> None:
    scored = ScoredResponse(data, min(whole, len(data)), len(data), frozenset())
    for evidence in (NOTHING, InferenceEvidence({(key, 0): 9.0 for key in keys}, first=first), NOTHING):
        assert infer(scored, evidence) == infer_response(data, min(whole, len(data)), len(data), evidence)
