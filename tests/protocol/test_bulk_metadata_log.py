"""Of responses from the metadata log that are found to hold no secret, the decoder masks nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.exchange.model import ExchangeMessage
from dissector.protocol.bulk_metadata_log import PublicResponses
from dissector.protocol.codec.program import message_program
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.masking import mask_secrets
from tests.protocol.test_metadata_log import CONTEXT, responses, with_checksums

FIRST_OF_BODY = 12
"""Behind the size, the correlation id and the first bytes of the body."""


def fetched() -> list[ExchangeMessage]:
    return list(responses())


def are_public(message: ExchangeMessage, frames: list[bytes], *, with_secrets: bool = False) -> list[bool]:
    """Which of some frames surely hold no secret, or none but in records; all have the layout of a message."""
    layout = message.layout
    assert layout.header is not None
    assert layout.body is not None
    program = message_program(layout.header, layout.header_version, layout.body, layout.body_version)
    sizes = np.array([len(each) for each in frames], np.int64)
    memory = FrameMemory.of_buffer(np.frombuffer(b"".join(frames), np.uint8), np.cumsum(sizes) - sizes, sizes)
    return PublicResponses(with_secrets=with_secrets).of(memory, program).tolist()


def is_masked_whole(message: ExchangeMessage, data: bytes) -> bool:
    return mask_secrets(data, len(data), message.layout, len(data), CONTEXT).layout.masked_from is not None


def is_masked(message: ExchangeMessage, data: bytes) -> bool:
    found = mask_secrets(data, len(data), message.layout, len(data), CONTEXT)
    return found.data != data or found.layout != message.layout


@pytest.mark.long
def test_most_responses_of_a_quorum_are_public() -> None:
    public = [are_public(each, [each.data])[0] for each in fetched()]
    assert sum(public) > 0.9 * len(public)  # the others have configs, or are compressed
    shown = [are_public(each, [each.data], with_secrets=True)[0] for each in fetched()]
    assert sum(shown) > 0.99 * len(shown)


@given(
    number=st.integers(0, 1 << 16),
    damage=st.lists(
        st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3), min_size=1, max_size=4
    ),
    is_checked=st.booleans(),
)
def test_what_damage_makes_the_decoder_mask_is_not_public(
    number: int, damage: list[list[tuple[int, int]]], is_checked: bool
) -> None:
    message = fetched()[number % len(fetched())]
    frames = []
    for places in damage:
        data = bytearray(message.data)
        for at, value in places:
            data[FIRST_OF_BODY + at % (len(data) - FIRST_OF_BODY)] = value
        frames.append(with_checksums(data) if is_checked else bytes(data))
    for data, is_public in zip(frames, are_public(message, frames), strict=True):
        assert not (is_public and is_masked(message, data)), data.hex()
    for data, is_shown in zip(frames, are_public(message, frames, with_secrets=True), strict=True):
        assert not (is_shown and is_masked_whole(message, data)), data.hex()
