"""A `records` field cut into parts, and its records counted by heads."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.records.counting import RecordCount, count_records
from dissector.protocol.records.entries import RecordsEntryKind, is_one_batch, split_entries


def _part(magic: int, body: bytes, beyond: int) -> bytes:
    """What begins like a batch or a message, and says that it has so many more bytes, or fewer."""
    rest = struct.pack(">iB", 0, magic) + body
    return struct.pack(">qi", 0, len(rest) + beyond) + rest


PART = st.builds(
    _part, st.sampled_from((0, 1, 2, 2, 2, 3)), st.binary(min_size=40, max_size=70), st.sampled_from((0, 0, 0, -1, 1))
)
BATCH = st.binary(min_size=44, max_size=70).map(lambda body: _part(2, body, 0))
FIELD = st.one_of(st.binary(max_size=70), PART, st.lists(PART, max_size=3).map(b"".join))


@given(FIELD)
def test_a_field_is_one_batch_where_that_is_its_only_part(data: bytes) -> None:
    assert is_one_batch(data) == ([part.kind for part in split_entries(data)] == [RecordsEntryKind.BATCH])


@given(st.lists(BATCH, max_size=4))
def test_batches_count_for_as_much_together_as_alone(batches: list[bytes]) -> None:
    alone = [count_records(batch) for batch in batches]
    codecs = {codec for each in alone for codec in each.codecs}
    assert count_records(b"".join(batches)) == RecordCount(sum(each.records for each in alone), codecs)
