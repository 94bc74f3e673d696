"""What columns prove of a capture is what a look at each message gives, in order."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissector.analysis.conformance import RULES, CheckResult, ProtocolRule, check
from dissector.analysis.conformance.batch_columns import batches_in
from dissector.analysis.conformance.events import MessagePlaces
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.rule import Proof, RuleMemory
from dissector.capture_session import Capture
from dissector.exchange.message_decoder import MessageDecoder
from dissector.exchange.model import Exchange, ExchangeRow
from dissector.exchange.orphan_decoder import OrphanDecoder
from dissector.index.exchange_table import IndexRow
from dissector.index.index_columns import IndexColumns
from dissector.protocol.kernel.piece_tests import have_batches, have_other_checksums, have_wrappers
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.entries import MAGIC_AT, RecordsEntryKind, split_entries
from dissector.protocol.records.from_json import records_bytes
from tests.analysis.conformance.making import Step, made
from tests.analysis.conformance.steps import (
    add,
    batch,
    beat,
    consumer_beat,
    end,
    fetch,
    fetched,
    join,
    numbered,
    offers,
    produce,
    share,
)
from tests.analysis.conformance.test_any_input import pairs
from tests.conftest import BUNDLED, some_of
from tests.protocol.vectors import RELEASES
from tests.traffic import Turn, capture_of, conversation, exchanges


def one_by_one(rule: ProtocolRule) -> ProtocolRule:
    """The rule, as if columns showed nothing."""

    def proof(_cls: type[RuleMemory], columns: MessageColumns, apis: frozenset[str]) -> Proof:
        return Proof(columns.messages_of(columns.of(apis)) | (~columns.is_request & ~columns.is_response))

    begin = type(rule.begin.__name__, (rule.begin,), {"proof": classmethod(proof)})
    return replace(rule, begin=begin, reads=None)


CAREFUL = [one_by_one(rule) for rule in RULES]


def held(path: Path, rules: "list[ProtocolRule] | tuple[ProtocolRule, ...]") -> CheckResult:
    with Capture([str(path)]) as capture:
        for _ in capture.read():
            pass
        return check([("", capture)], rules)


def said(result: CheckResult) -> tuple[object, ...]:
    breaches = [replace(each, rule=RULES[0], words=f"{each.rule.code}: {each.words}") for each in result.breaches]
    return +result.kept, +result.broken, breaches, result.exchanges


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", BUNDLED)
def test_columns_and_single_messages_agree(path: Path) -> None:
    assert said(held(path, RULES)) == said(held(path, CAREFUL))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("seed", some_of(range(8), 0))
def test_columns_and_single_messages_agree_on_damaged_messages(seed: int, tmp_path: Path) -> None:
    """Each exchange comes several times, now and then damaged, so that equal ones stand beside others."""
    chance = random.Random(seed)
    turns = pairs(RELEASES[-1])
    exchanges = chance.choices(list(zip(turns[::2], turns[1::2], strict=True)), k=300)
    repeated = [turn for _ in range(3) for exchange in exchanges for turn in exchange]
    for n in chance.sample(range(len(repeated)), 150):
        data = bytearray(repeated[n].data)
        if len(data) > 20:
            data[chance.randrange(8, len(data))] = chance.randrange(256)
            repeated[n] = Turn(repeated[n].from_client, bytes(data))
    path = Path(capture_of(tmp_path, conversation(repeated)))
    assert said(held(path, RULES)) == said(held(path, CAREFUL))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", BUNDLED)
def test_columns_and_single_messages_agree_on_damaged_recordings(path: Path, tmp_path: Path) -> None:
    chance = random.Random(path.name)
    data = bytearray(path.read_bytes())
    for _ in range(40):
        data[chance.randrange(400, len(data))] = chance.randrange(256)
    damaged = tmp_path / path.name
    damaged.write_bytes(data)
    assert said(held(damaged, RULES)) == said(held(damaged, CAREFUL))


def test_responses_whose_requests_may_be_missing_are_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(capture_of(tmp_path, conversation(exchanges(20)[1:], handshake=False)))
    decoded: list[IndexRow] = []
    decode = OrphanDecoder.decode

    def watched(self: OrphanDecoder, messages: MessageDecoder, index_row: IndexRow, row: ExchangeRow) -> Exchange:
        decoded.append(index_row)
        return decode(self, messages, index_row, row)

    monkeypatch.setattr(OrphanDecoder, "decode", watched)
    careful = said(held(path, CAREFUL))
    assert decoded
    decoded.clear()
    assert said(held(path, RULES)) == careful
    assert not decoded


def families(chance: random.Random) -> dict[str, Callable[[], Step]]:
    """Of each kind of conversation the next step."""
    some, number = chance.choice, chance.randint

    def transactional() -> Step:
        batches = numbered(some([0, 2]), attributes=some([0, 0x10, 0x10]))
        name = some(["t", "t", "t", "t", "u", None])
        return produce(batches, index=number(0, 1), version=some([9, 9, 12]), transactional_id=name)

    def assignment() -> Step:
        made = [{"member_id": some(["m1", "m2"]), "assignment": some(["", "00"])} for _ in range(number(0, 2))]
        member = {"group_id": "g", "generation_id": int(chance.random() < 0.3), "member_id": some(["m1", "m2"])}
        told = {"error_code": some([0, 0, 0, 27]), "assignment": some(["", "00", "00"])}
        return Step("SyncGroup", 3, {**member, "assignments": made}, told)

    def sequence() -> Step:
        first = number(0, 3) if chance.random() < 0.95 else some([-1, (1 << 31) - 2])
        return produce(numbered(first, int(chance.random() < 0.2)), error=some([0, 0, 0, 6, 45]))

    return {
        "sequences": sequence,
        "transactions": lambda: some([transactional, lambda: end(), lambda: add(number(0, 1))])(),
        "epochs": lambda: consumer_beat(
            number(-1, 2), number(0, 2), some([0, 0, 0, 25, 110, 14]), member_id=some(["m1", "m2", ""])
        ),
        "offers": lambda: offers((0, 3, some([9, 7])), version=number(0, 3), error=some([0, 35])),
        "versions": lambda: some([offers((0, 3, some([9, 7]))), produce(batch(), version=some([7, 8, 9]))]),
        "assignments": assignment,
        "members": lambda: some(
            [join(some(["", "m1"]), some([0, 79]), generation=number(0, 2)), beat(number(0, 2), error=some([0, 27]))]
        ),
        "shares": lambda: share(number(-1, 3), chance.random() < 0.5),
        "fetches": lambda: fetch(
            None, fetched(error_code=some([0, 0, 1]), high_watermark=number(-1, 5), last_stable_offset=number(-1, 6))
        ),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "family", some_of(sorted(families(random.Random(0))), "sequences", "transactions", "assignments")
)
@pytest.mark.parametrize("seeds", some_of([range(12), range(12, 40)], range(12)), ids=["some", "others"])
def test_columns_and_single_messages_agree_on_conversations(family: str, seeds: range, tmp_path: Path) -> None:
    """What a client says keeps rules and breaks them; now and then a response comes late or never, or an id again."""
    for seed in seeds:
        chance = random.Random(f"{family} {seed}")
        step = families(chance)[family]
        steps, at = [], 0
        for _ in range(chance.randint(2, 8)):
            at += chance.randint(0, 9)
            answered = at + chance.choice([0, 1, 20])
            timed = step()._replace(at=at, answered=answered, correlation_id=chance.choice([None, None, None, 2]))
            steps.append(timed if chance.random() < 0.8 else timed._replace(response=None))
        path = Path(made(tmp_path, steps))
        assert said(held(path, RULES)) == said(held(path, CAREFUL)), seed


@pytest.mark.long
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.booleans(), st.none() | st.integers(0, 9)).filter(lambda row: any(row[1:])),
        max_size=30,
    )
)
@example([(0, True, 0), (0, True, 0), (5, False, 1), (5, True, 3)])
def test_messages_are_in_the_order_in_which_they_came_to_a_heap(rows: list[tuple[int, bool, int | None]]) -> None:
    """Where time does not go back, columns say what one message after the other does."""
    begins = np.sort(np.array([begin for begin, _, _ in rows], np.int64))
    asked = np.array([is_asked or after is None for _, is_asked, after in rows], np.bool_)
    answered = np.array([after is not None for *_, after in rows], np.bool_)
    after = np.array([after or 0 for *_, after in rows], np.int64)
    nothing = np.zeros(len(rows), np.int64)
    found = IndexColumns(*[nothing] * len(IndexColumns._fields))._replace(
        request_size=np.where(asked, 1, -1), response_size=np.where(answered, 1, -1),
        request_time_ns=begins, response_time_ns=np.where(asked, begins + after, begins),
    )  # fmt: skip
    one_after_another = MessagePlaces._one_by_one(begins, asked, answered, found.response_time_ns)
    for columns, single in zip(MessagePlaces.of(found), one_after_another, strict=True):
        assert columns.tolist() == single.tolist()


FIELDS = st.lists(
    st.sampled_from(
        [
            records_bytes({"batches": [batch()]}),
            records_bytes({"batches": [batch(magic=1)]}),
            records_bytes({"batches": [batch(magic=1, attributes=1)]}),
            b"\0" * 5,
        ]
    ),
    max_size=3,
).map(b"".join)


@pytest.mark.long
@given(st.lists(st.tuples(FIELDS, st.integers(0, 300), st.integers(0, 255)), max_size=5))
def test_records_are_tested_as_their_entries_are_read(damaged: list[tuple[bytes, int, int]]) -> None:
    fields = []
    for field, at, byte in damaged:
        data = bytearray(field)
        if at < len(data):
            data[at] = byte
        fields.append(bytes(data))
    whole = np.frombuffer(b"".join(fields) + b"\0", np.uint8)
    sizes = np.array([len(field) for field in fields], np.int64)
    starts = (np.cumsum(sizes) - sizes + whole.ctypes.data).astype(np.uint64)
    entries = [list(split_entries(field)) for field in fields]
    wrappers = [
        any(
            each.kind is RecordsEntryKind.MESSAGE and field[each.start + MAGIC_AT + 1] & CODEC_MASK for each in some
        ) for field, some in zip(fields, entries, strict=True)
    ]  # fmt: skip
    batches = [any(each.kind is RecordsEntryKind.BATCH for each in some) for some in entries]
    others = [any(not each.crc_valid for each in batches_in(field)) for field in fields]
    assert have_wrappers(starts, sizes).tolist() == wrappers
    assert have_batches(starts, sizes).tolist() == batches
    assert have_other_checksums(starts, sizes).tolist() == others
