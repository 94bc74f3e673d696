"""What is found of batches, their sequence numbers, and offsets that are read; and what is next to it and is not."""

import random
from pathlib import Path

from dissector.findings.detectors.batches import ENOUGH, LARGE, SAMPLE
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.wire import uuid_text
from tests.cases import cases
from tests.findings.conversations import Talk, Values, codes, fetch, found, produce

CUPS = b"cup saucer spoon kettle " * 20


@cases(("records", "times", "expected"), [(1, 49, []), (3, 80, []), (2, 80, [(49, "tiny-batches")])])
def test_tiny_batches(tmp_path: Path, records: int, times: int, expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n in range(times):
        produce(talk, n, records)
    assert codes(tmp_path, talk) == expected


def test_batches_that_would_compress(tmp_path: Path) -> None:
    plain, packed, dense = Talk(1), Talk(2), Talk(3)
    noise = random.Random(1).randbytes(9_000)
    for n in range(5):
        produce(plain, n, 30, value=CUPS)
        produce(packed, n, 30, value=CUPS, codec=1)
        produce(dense, n, 3, value=noise)
    [(_, finding)] = found(tmp_path, plain, packed, dense)
    assert finding.code == "uncompressed-batches"
    assert finding.message.startswith("5 batches with ")


def test_numbers_left_out_and_sent_again(tmp_path: Path) -> None:
    talk = Talk()
    for at, (sequence, count) in enumerate([(0, 3), (3, 3), (3, 3), (9, 2), (11, 1)]):
        produce(talk, at, count, producer=(70, 0, sequence))
    (again, retried), (row, gap) = found(tmp_path, talk)
    assert (again, retried.code, row, gap.code) == (2, "retried-batch", 3, "sequence-gap")
    assert gap.message == "begins with sequence number 9, expected 6"
    assert gap.path == "request.body.topic_data[0].partition_data[0].records.base_sequence"


def test_sequence_numbers_begin_again_with_an_epoch_and_after_the_last(tmp_path: Path) -> None:
    talk = Talk()
    last = (1 << 31) - 2
    for at, (epoch, sequence) in enumerate([(0, 0), (0, 2), (1, 0), (1, 2), (2, last), (2, 0)]):
        produce(talk, at, 2, producer=(70, epoch, sequence))
    assert not codes(tmp_path, talk)


def test_numbers_that_the_capture_may_have_lost_are_no_gap(tmp_path: Path) -> None:
    talk = Talk()
    produce(talk, 0, 2, producer=(70, 0, 0))
    talk.turns[-2] = type(talk.turns[-2])(talk.turns[-2].time_ns, True, talk.turns[-2].data, 300)
    produce(talk, 10, 2, producer=(70, 0, 8))
    produce(talk, 20, 2, producer=(70, 0, 10))
    assert "sequence-gap" not in [code for _, code in codes(tmp_path, talk)]


@cases(
    ("ends", "expected"),
    [
        ([100, 200, 300], []),
        ([5000, 4000, 3000, 2000], []),
        ([2000, 3000, 6000, 9000], [(2, "consumer-lag")]),
        ([200_000, 199_000], [(0, "consumer-lag")]),
    ],
)
def test_how_far_behind_a_fetch_reads(tmp_path: Path, ends: list[int], expected: list[tuple[int, str]]) -> None:
    talk = Talk()
    for n, end in enumerate(ends):
        fetch(talk, 2000 * n, 0, end)
    assert codes(tmp_path, talk) == expected


@cases("version", [12, 15, 18])
def test_a_follower_is_no_consumer_that_lags(tmp_path: Path, version: int) -> None:
    named = {"topic": "orders"} if version < 13 else {"topic_id": uuid_text(bytes(15) + b"\1")}
    asked = {**named, "partitions": [{"partition": 0, "fetch_offset": 0}]}
    had = {**named, "partitions": [{"partition_index": 0, "high_watermark": 200_000, "records": None}]}
    replica: Values = {"replica_id": 2}
    follower = replica if version < 15 else {"replica_state": replica}
    for of_replica, expected in (({}, ["consumer-lag"]), (follower, [])):
        talk = Talk()
        talk.ask(0, "Fetch", version, {"max_wait_ms": 500, "topics": [asked], **of_replica}, {"responses": [had]})
        assert [code for _, code in codes(tmp_path, talk)] == expected


def sized(size: int) -> bytes:
    """A value that compresses well, with which a batch of one record has so many bytes."""
    values = (bytes(size - around) for around in range(60, 100))
    return next(value for value in values if len(batch_bytes({"records": [{"value": value}]})) == size)


@cases(
    ("sizes", "reported"),
    [
        ([LARGE] * 4, "4 batches with 32k bytes"),
        ([LARGE] * 3 + [LARGE - 1] * 4, None),
        ([ENOUGH], "1 batches with 32k bytes"),
        ([ENOUGH - 1], None),
    ],
)
def test_enough_large_batches_are_reported(tmp_path: Path, sizes: list[int], reported: str | None) -> None:
    talk = Talk()
    for at, size in enumerate(sizes):
        produce(talk, at, value=sized(size))
    messages = [finding.message for _, finding in found(tmp_path, talk) if finding.code == "uncompressed-batches"]
    assert [each.partition(" in all")[0] for each in messages] == [reported] * (reported is not None)


@cases(("share", "worth"), [(0.5, True), (0.66, True), (0.74, False), (0.9, False)])
def test_a_sample_that_compresses_by_less_than_a_third_is_dense(tmp_path: Path, share: float, worth: bool) -> None:
    noise = random.Random(1).randbytes(int(SAMPLE * share))
    value = noise.ljust(SAMPLE, b"\0") + bytes(ENOUGH)
    talk = Talk()
    produce(talk, 0, value=value)
    assert bool(codes(tmp_path, talk)) == worth
