"""Of a frame that is malformed, cut or has surplus bytes the header stays; of numbers that are names nothing does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dissector
from dissector.core.finding import Finding, Severity
from dissector.exchange.model import ExchangeMessage
from dissector.export.redaction.frames import Redactor
from dissector.export.redaction.remnants import Remnants
from dissector.protocol.codec.plan import plan
from dissector.protocol.message import Traced, read
from dissector.protocol.message_layout import UNKNOWN_RESPONSE, MessageLayout, request_layout, response_layout
from dissector.protocol.records.from_json import batch_bytes
from dissector.protocol.schema.model import Api
from dissector.protocol.tree import ByteSource, Node
from tests.cases import cases
from tests.export.redaction.test_frames import HIDDEN, MESSAGES, produce
from tests.protocol.random_messages import make
from tests.traffic import seeds
from tools.fuzz.mutation import mutated

NAME = b"WxYzQvKj"
METADATA = request_layout(3, 9)
PRODUCE = request_layout(0, 9)


def metadata(name: bytes = NAME, **header: str) -> bytes:
    body = {"topics": [{"name": name.decode()}], "allow_auto_topic_creation": True}
    return dissector.encode_request("Metadata", 9, body, **{"client_id": "WxYzClient", **header})


def message(data: bytes, layout: MessageLayout = METADATA, missing: int = 0) -> ExchangeMessage:
    return ExchangeMessage(0, len(data) + missing, data, len(data), layout)


def sized(data: bytes) -> bytes:
    return (len(data) - 4).to_bytes(4, "big") + data[4:]


def codes(each: ExchangeMessage) -> set[str]:
    return {finding.code for finding in each.findings}


@cases(("damage", "code"), [
    (lambda data: sized(data + b"surplus WxYz"), "trailing-bytes"),
    (lambda data: sized(data[:-6]), "malformed"),
    (lambda data: data[:-14] + b"\x7f" + data[-13:], "malformed"),
    (lambda data: data[:-6], "malformed"),
])  # fmt: skip
def test_a_damaged_frame_keeps_its_header_and_its_finding(damage: object, code: str) -> None:
    assert callable(damage)
    was = message(damage(metadata()))
    assert code in codes(was)
    made = Redactor().message(was)
    now = message(made)
    assert len(made) == len(was.data)
    assert made[:12] == was.data[:12]
    assert {"malformed", "trailing-bytes"} & codes(now) == {code}
    assert now.header["client_id"] == "client-001"
    assert b"wxyz" not in made.lower()


def test_a_frame_cut_by_the_snap_length_keeps_its_header() -> None:
    whole = metadata()
    for size in range(12, len(whole)):
        made = Redactor().message(message(whole[:size], missing=len(whole) - size))
        assert len(made) == size
        assert made[:12] == whole[:12]
        assert b"wxy" not in made[12:].lower()


def test_what_should_be_a_header_and_is_a_name_goes_too() -> None:
    redactor = Redactor()
    redactor.learn(message(metadata()))
    other = sized(b"\0\0\0\0" + NAME + metadata()[12:])
    for layout in (request_layout(0x5778, 0x597A, other), METADATA):
        assert redactor.message(message(other, layout)) == other[:4] + bytes(len(other) - 4)


def test_a_name_alone_in_the_header_of_a_damaged_frame_goes() -> None:
    data = metadata()
    shifted = sized(data[:8] + NAME[:6] + data[20:])
    made = Redactor().message(message(shifted))
    assert len(made) == len(shifted)
    assert made[8:12] == NAME[:3] + bytes([NAME[3] ^ 0x80])
    assert NAME[4:6] not in made


def test_letters_of_a_name_are_no_tagged_fields_of_a_header() -> None:
    """Where the length of a client id in front of a name is damaged: three of its letters stayed, a count, a tag and a
    size."""
    data = metadata(**{"client_id": "abcBqp" + "Z" * 200})
    was = message(data[:12] + b"\x00\x03" + data[14:])
    assert was.traced.tree.find("header.(tag 113).(size)") is not None
    made = Redactor().message(was)
    assert made[:14] == was.data[:14]
    assert b"Bqp" not in made
    assert len(made) == len(was.data)


def test_a_name_in_a_number_of_a_frame_that_has_a_known_one_in_another_goes() -> None:
    redactor = Redactor()
    redactor.learn(message(metadata()))
    fetch = {"replica_id": int.from_bytes(b"aCme", "big"), "min_bytes": int.from_bytes(NAME[2:6], "big")}
    layout = request_layout(1, 4)
    alone, beside = (
        message(dissector.encode_request("Fetch", 4, {"replica_id": fetch["replica_id"]} | some, client_id=""), layout)
        for some in ({}, fetch)
    )
    assert redactor.message(alone) == alone.data
    assert b"aCm\xe5\0\0\0\0YzQ\xf6" in redactor.message(beside)


@cases(("expiry", "made"), [
    (b"WxYzQvKj", b"WxY\xfaQvK\xea"), (b"\0xYzQvKj", b"\0xYz\xd1vKj"), (b"\0\0YzQvKj", b"\0\0YzQ\xf6Kj"),
    (b"\0\0\0zQvKj", b"\0\0\0zQvKj"),
])  # fmt: skip
def test_of_six_letters_that_nobody_said_before_no_four_stay(expiry: bytes, made: bytes) -> None:
    number = int.from_bytes(expiry, "big")
    data = dissector.encode_response("RenewDelegationToken", 1, {"expiry_timestamp_ms": number})
    assert Redactor().message(message(data, response_layout(39, 1, data)))[10:18] == made


def test_six_letters_in_a_length_leave_the_header() -> None:
    batch = bytearray(batch_bytes({"records": [{"value": b"x"}]}))
    batch[23:31] = b"WxYzQvKj"  # the last offset's delta and half of the first time
    data = produce(bytes(batch))
    made = message(Redactor().message(message(data, PRODUCE)), PRODUCE)
    assert made.header == message(data, PRODUCE).header | {"client_id": made.header["client_id"]}
    assert b"WxYz" not in made.data


def test_four_letters_ahead_of_damage_within_a_frame_leave_the_header() -> None:
    batch = batch_bytes({"records": [{"value": b"x"}]})
    for count, stays in ((b"WxYz", False), (b"Wx\1z", True)):
        data = produce(batch[:57] + count + b"\xde\1" + batch[63:])
        assert any(node.name == "(rest)" for node in message(data, PRODUCE).tree.walk())
        made = message(Redactor().message(message(data, PRODUCE)), PRODUCE)
        assert (count in made.data) == stays


def test_a_name_alone_in_a_frame_whose_layout_is_a_guess_goes() -> None:
    expiry = int.from_bytes(b"\0\1\0\x0f" + NAME[:4], "big")
    data = dissector.encode_response("RenewDelegationToken", 1, {"expiry_timestamp_ms": expiry})
    layout = response_layout(39, 1, data)
    guess = layout._replace(findings=(Finding("inferred", Severity.NOTE, "a guess"),))
    assert NAME[:4] in Redactor().message(message(data, layout))
    orphan = b"\0\0\0\4" + NAME[:4]
    assert Redactor().message(message(orphan, UNKNOWN_RESPONSE)) == orphan[:7] + bytes([NAME[3] ^ 0x80])
    made = Redactor().message(message(data, guess))
    assert read(made, layout).body["expiry_timestamp_ms"] == expiry ^ 0x80


def test_numbers_that_are_names_change_and_stay_numbers() -> None:
    redactor = Redactor()
    redactor.learn(message(metadata()))
    layout = request_layout(1, 4)
    number = int.from_bytes(NAME[:4].upper(), "big")
    for value in (number, number - 1):
        fetch = {"replica_id": value, "max_wait_ms": 7, "topics": []}
        data = dissector.encode_request("Fetch", 4, fetch)
        again = read(redactor.message(message(data, layout)), layout)
        assert again.body["replica_id"] == (value ^ 0x80 if value == number else value)
        assert again.body["max_wait_ms"] == 7


def test_equal_numbers_stay_equal() -> None:
    redactor = Redactor()
    redactor.learn(message(metadata()))
    correlation = int.from_bytes(NAME[:4], "big")
    made = redactor.message(
        message(dissector.encode_request("Metadata", 9, {"topics": []}, correlation_id=correlation))
    )
    answer = dissector.encode_response("Metadata", 9, {"brokers": [], "topics": []}, correlation_id=correlation)
    assert redactor.message(message(answer, response_layout(3, 9, answer)))[4:8] == made[8:12]
    assert made[8:12] == (correlation ^ 0x80).to_bytes(4, "big")


def test_a_damaged_section_of_records_keeps_its_size_alone() -> None:
    records = [{"key": NAME, "value": b"x"}] * 3
    batch = bytearray(batch_bytes({"records": records}))
    batch[61:67] = NAME[:6]  # no record's length
    data = produce(bytes(batch))
    again = dissector.decode_request(Redactor().frame(dissector.decode_request(data).traced))
    assert not any(NAME[at : at + 4] in again.data for at in range(5))
    assert "bad-record" in {finding.code for finding in again.traced.findings}


@given(chance=seeds, which=st.sampled_from(MESSAGES), asks=st.booleans())
def test_nothing_of_a_changed_message_of_any_api_is_left(
    chance: random.Random, which: tuple[Api, int], asks: bool
) -> None:
    api, version = which
    layout = request_layout(api.key, version) if asks else response_layout(api.key, version, bytes(12))
    assert layout.header is not None
    assert layout.body is not None
    _, head = make(plan(layout.header, layout.header_version), chance)
    _, body = make(plan(layout.body, layout.body_version), chance)
    data = sized(bytes(4) + head + body)
    for _ in range(4):
        changed = bytes(4) + mutated(data[4:], chance)
        changed = sized(changed) if chance.random() < 0.8 else data[:4] + changed[4:]
        redactor = Redactor()
        redactor.learn(message(data, layout))
        made = redactor.message(message(changed, layout))
        assert len(made) == len(changed)
        assert [piece for piece in PIECES if piece in made.lower()] == []


PIECES = sorted({word[at : at + 4].lower() for word in HIDDEN for at in range(len(word) - 3) if word.isalpha()})


def found(data: bytes) -> list[bytes]:
    remnants = Remnants()
    remnants.learn(_of(NAME.decode(), "Größe", b"a key", b"\0\0\0\0", "abc"))
    return [data[start:end] for start, end in remnants.find(data)]


def _of(*values: str | bytes) -> Traced:
    root = Node("frame", "", "STRUCT", 0, 0)
    root.children = [Node("x", "x", "STRING", 0, 0, value) for value in values]
    return Traced(root, [ByteSource(0, "frame", b"")], [])


@cases(("data", "pieces"), [
    (b"", []), (b"WxY", []), (b"\0WxYz\0", [b"WxYz"]), (b"\0wXyZ\0", [b"wXyZ"]), (b"YzQv", [b"YzQv"]),
    (b"\0r\xc3\xb6\xc3\x9f", [b"r\xc3\xb6\xc3", b"\xc3\xb6\xc3\x9f"]),
    (b" KEY\0", [b" KEY"]), (bytes(9), []), (b"other\0", []), (b"\1\xffabc\0", []),
    (b"others\0", [b"othe", b"ther", b"hers"]),
])  # fmt: skip
def test_pieces_of_names_in_any_case_are_found(data: bytes, pieces: list[bytes]) -> None:
    assert found(data) == pieces


def test_names_are_learned_until_those_of_their_kind_are_too_large_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dissector.export.redaction.remnants._MAX_BYTES", 8)
    remnants = Remnants()
    remnants.learn(_of("abcd", "efgh", "ijkl", "mnop", b"qrst"))
    kept = b"\0".join((b"abcd", b"efgh", b"ijkl", b"mnop", b"qrst"))
    assert [kept[start:end] for start, end in remnants.find(kept)] == [b"abcd", b"efgh", b"ijkl", b"qrst"]


def test_ids_are_no_names() -> None:
    remnants = Remnants()
    traced = _of("AAAAAAAAQv")
    traced.tree.children[0].type = "UUID"
    remnants.learn(traced)
    assert list(remnants.find(b"\0AAAA\0")) == []
