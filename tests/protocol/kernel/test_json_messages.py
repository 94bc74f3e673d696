"""What the kernel writes as JSON is what Python makes of the decoded message; or it is left to Python."""

import random
from collections.abc import Iterator
from itertools import pairwise

import cramjam
import numpy as np
import pytest

from dissector import encode_request
from dissector.bulk.json_bodies import marks
from dissector.bulk.json_fields import FieldTexts, HoledMessages
from dissector.core.json_text import dumps
from dissector.exchange.model import ExchangeMessage
from dissector.exchange.to_json import message_object
from dissector.protocol.codec.json_program import JsonProgram, Mark
from dissector.protocol.codec.plan import plan
from dissector.protocol.codec.program import ColumnPlan
from dissector.protocol.codec.structs import structs
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.embedded.formats import FORMATS, GROUP_MESSAGES
from dissector.protocol.embedded.topics import INTERNAL_TOPICS
from dissector.protocol.kernel.json_messages import JsonMessages, NamedTopics, Outcome, Written
from dissector.protocol.kernel.shredding import FrameMemory
from dissector.protocol.message_layout import PREFIX, MessageLayout, request_layout, response_layout
from dissector.protocol.records.batch import CRC_FROM
from dissector.protocol.records.batch import HEADER as BATCH_HEADER
from dissector.protocol.records.from_json import records_bytes
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.field_enums import CompressionType
from dissector.protocol.schema.loader import alternatives, apis
from tests.conftest import some_of
from tests.protocol import random_messages

PLAIN_WORDS = ("", "orders", 'say "hi" \\ {', "x" * 300, "__consumer_offsets", "~ {")


def layouts() -> Iterator[tuple[MessageLayout, bool]]:
    """The layouts of all messages that the kernel may write, and whether each is a request."""
    for api in apis():
        for version in range(api.versions.low, api.versions.high + 1):
            for layout in (request_layout(api.key, version), response_layout(api.key, version, b"")):
                assert layout.body is not None
                if layout.body not in FORMATS.keys() - GROUP_MESSAGES and not alternatives(layout.body, version):
                    yield layout, layout.header == "RequestHeader"


def written(layout: MessageLayout, data: bytes, names: dict[str, str], *, is_request: bool) -> bytes | None:
    """What the kernel writes; None where it leaves the message to Python."""
    assert layout.header is not None
    assert layout.body is not None

    def mark(column: ColumnPlan) -> Mark:
        return marks(layout.body or "", column, is_request=is_request) & ~Mark.ERROR_CODE

    plans = (("header", plan(layout.header, layout.header_version)), ("body", plan(layout.body, layout.body_version)))
    topics = NamedTopics.of(names, INTERNAL_TOPICS.__contains__, "topic_id_decoded")
    frames = FrameMemory.of_buffer(np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)]))
    messages = JsonMessages(shows_secrets=True)
    program, context = JsonProgram(plans, mark), DecodingContext(topic_names=names)
    found = messages.write(frames, np.array([17]), np.array([program.addresses], np.uint64), topics, PREFIX)
    if found.outcomes[0] == Outcome.WRITTEN and len(found.holes):
        fill(messages, found, layout, program, context)
    text = messages.text[found.starts[0] : found.ends[0]].tobytes()
    return text if found.outcomes[0] == Outcome.WRITTEN else None


def fill(
    messages: JsonMessages, found: Written, layout: MessageLayout, program: JsonProgram, context: DecodingContext
) -> None:
    """Fill the holes of a message."""
    same, reports = np.zeros(len(found.holes), np.int64), found.reports[found.holes["row"]]
    holed = HoledMessages([(layout, program)], same, reports["records_fields"] <= 1, reports["has_compressed"] != 0)
    messages.fill(found, FieldTexts(context, packs_records=False, shows_secrets=True).texts(found.holes, holed))


def decoded(layout: MessageLayout, data: bytes, names: dict[str, str]) -> bytes:
    """What Python writes."""
    context = DecodingContext(topic_names=names)
    message = ExchangeMessage.of_frame(17, len(data), data, len(data), layout, context, show_secrets=True)
    assert not message.findings, "read to its end"
    return dumps(message_object(message))


def made(layout: MessageLayout, chance: random.Random) -> tuple[bytes, dict[str, str]]:
    """A frame, and names of some topic ids in it."""
    assert layout.header is not None
    assert layout.body is not None
    _, header = random_messages.make(plan(layout.header, layout.header_version), chance)
    values, body = random_messages.make(plan(layout.body, layout.body_version), chance)
    names = {
        str(each["topic_id"]): chance.choice(("orders", "__transaction_state", "ünï"))
        for each in structs(values)
        if each.get("topic_id") and chance.random() < 0.5
    }
    return bytes(PREFIX) + header + body, names


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(range(2), 0))
def test_messages_are_written_as_python_writes_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    counts = {True: 0, False: 0}
    for layout, is_request in layouts():
        for words in (random_messages.WORDS, PLAIN_WORDS):
            monkeypatch.setattr(random_messages, "WORDS", words)
            data, names = made(layout, chance)
            found = written(layout, data, names, is_request=is_request)
            assert found in (None, decoded(layout, data, names))
            counts[found is not None] += words is PLAIN_WORDS
    assert counts[True] > counts[False]


@pytest.mark.long
@pytest.mark.slow
def test_damaged_messages_are_refused_or_written_as_python_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(7)
    monkeypatch.setattr(random_messages, "WORDS", PLAIN_WORDS)
    for layout, is_request in layouts():
        data, names = made(layout, chance)
        for _ in range(4):
            damaged = bytearray(data)
            damaged[chance.randrange(PREFIX, len(data))] = chance.choice(
                (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
            )
            cut = bytes(damaged[: chance.choice((len(data), len(data), chance.randrange(PREFIX, len(data) + 1)))])
            found = written(layout, cut, names, is_request=is_request)
            assert found is None or found == decoded(layout, cut, names)


def produced(codec: int, chance: random.Random, *, attributes: int = 0) -> bytes:
    """A field with one or two batches."""
    return b"".join(batch(codec, chance, attributes=attributes) for _ in range(chance.randint(1, 2)))


def batch(codec: int, chance: random.Random, *, attributes: int) -> bytes:
    words = [chance.randbytes(chance.randint(1, 9)).hex() for _ in range(5)]
    records = [
        {
            "offset": n, "timestamp": 1_790_000_000_000 + chance.randint(-9, 9), "timestamp_delta": n,
            "key": chance.choice((None, "", "6b")),
            "value": chance.choice((None, "", "".join(chance.choices(words, k=chance.randint(1, 200))))),
            "headers": [
                {"key": 'h"', "value": value} for value in chance.sample((None, "", "68"), chance.randint(0, 2))
            ],
        }
        for n in range(chance.randint(0, 5))
    ]  # fmt: skip
    head = {"base_offset": 0, "magic": 2, "attributes": attributes, "base_timestamp": 1_790_000_000_000}
    head |= {"max_timestamp": 1_790_000_000_005, "producer_id": 5, "records": records}
    if codec != CompressionType.LZ4:
        return records_bytes({"batches": [head | {"attributes": codec | attributes}]})
    return in_blocks(records_bytes({"batches": [head]}), chance)


def in_blocks(raw: bytes, chance: random.Random) -> bytes:
    """A batch with its section as an lz4 frame, as Java and librdkafka write it: of one block or, as large ones are, of
    several. One that compression would not make smaller is not compressed."""
    section = raw[BATCH_HEADER.size :]
    cuts = sorted(chance.sample(range(1, len(section)), 2)) if len(section) > 2 and chance.random() < 0.5 else []
    blocks = [block(section[start:end], chance) for start, end in pairwise((0, *cuts, len(section)))]
    frame = bytes.fromhex("04224d18604082") + b"".join(blocks) + bytes(4)
    changed = raw[8:CRC_FROM] + (raw[CRC_FROM + 1] | CompressionType.LZ4).to_bytes(2, "big") + raw[23:61] + frame
    return raw[:8] + (len(changed) - 4).to_bytes(4, "big") + changed[4:]


def block(part: bytes, chance: random.Random) -> bytes:
    if part and chance.random() < 0.3:
        return (len(part) | 1 << 31).to_bytes(4, "little") + part
    packed = bytes(cramjam.lz4.compress_block(part, store_size=False))
    return len(packed).to_bytes(4, "little") + packed


def produce_request(*fields: bytes, topic: str = "orders") -> tuple[MessageLayout, bytes]:
    layout = request_layout(ApiKey.PRODUCE, 9)
    partitions = [{"index": n, "records": field} for n, field in enumerate(fields)]
    body = {"acks": 1, "timeout_ms": 5, "topic_data": [{"name": topic, "partition_data": partitions}]}
    return layout, encode_request("Produce", 9, body, correlation_id=1, client_id="test")


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [0, 8, 16, 64])
@pytest.mark.parametrize("codec", [0, 3])
def test_records_are_written_as_python_writes_them(codec: int, attributes: int) -> None:
    chance = random.Random(attributes)
    for _ in range(60):
        field = produced(codec, chance, attributes=attributes)
        layout, data = produce_request(field, b"", field[: chance.randrange(len(field))])
        found = written(layout, data, {}, is_request=True)
        assert found == decoded(layout, data, {})


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("codec", some_of([0, 3], 3))
def test_damaged_records_are_refused_or_written_as_python_writes_them(codec: int) -> None:
    chance = random.Random(codec)
    outcomes = set()
    for _ in range(1000):
        field = bytearray(produced(codec, chance))
        for _ in range(chance.choice((1, 1, 3))):
            field[chance.randrange(61, len(field)) if len(field) > 61 else 20] ^= 1 << chance.randrange(8)
        layout, data = produce_request(bytes(field))
        found = written(layout, data, {}, is_request=True)
        assert found in (None, decoded(layout, data, {}))
        outcomes.add(found is None)
    assert outcomes == {False, True}


@pytest.mark.parametrize("codec", [0, 3])
def test_records_of_internal_topics_are_inserted(codec: int) -> None:
    chance = random.Random(codec)
    for topic in ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__mine"):
        layout, data = produce_request(produced(codec, chance), topic=topic)
        assert written(layout, data, {}, is_request=True) == decoded(layout, data, {})


def test_control_batches_and_old_messages_are_inserted_among_others() -> None:
    chance = random.Random(3)
    plain, control, old = produced(0, chance), produced(0, chance, attributes=32), old_message(b"v")
    layout, data = produce_request(plain, control, b"", old, old[:-1], plain)
    assert written(layout, data, {}, is_request=True) == decoded(layout, data, {})


def test_records_that_share_a_budget_are_left_to_python() -> None:
    chance = random.Random(4)
    plain, lz4, control = (produced(codec, chance, attributes=more) for codec, more in ((0, 0), (3, 0), (3, 32)))
    for fields, is_written in (((lz4, plain), True), ((control,), True), ((control, plain), False)):
        layout, data = produce_request(*fields)
        assert written(layout, data, {}, is_request=True) == (decoded(layout, data, {}) if is_written else None)
    layout, data = produce_request(lz4, produced(0, chance, attributes=32))
    assert written(layout, data, {}, is_request=True) is None


def old_message(value: bytes) -> bytes:
    """A message of magic 1."""
    return records_bytes({"batches": [{"offset": 3, "magic": 1, "timestamp": 5, "key": None, "value": value.hex()}]})


def test_sections_of_other_codecs_are_asked_for() -> None:
    chance = random.Random(1)
    for codec in (1, 2, 4):
        layout, data = produce_request(produced(codec, chance))
        assert written(layout, data, {}, is_request=True) is None
