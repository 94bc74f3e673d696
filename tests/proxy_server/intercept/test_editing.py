"""A held message as JSON and back: what may be edited, and what is made of it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from dissector.protocol.message import Values
from dissector.proxy_server.intercept import EditError, editable_text, edited_frame, message_text
from dissector.proxy_server.intercept.editing import MOST_EDITED, MOST_PATHS
from tests.proxy_server.faults.wires import REQUESTS
from tests.proxy_server.intercept.messages import Message, held, request, response

NOT_WHOLE = "it can't be read to its end, so it can't be edited: send it on unchanged, or drop it"
MAY_BE_SECRET = "it may hold a secret and can't be edited: send it on unchanged, or drop it"
LOGIN: Values = {"auth_bytes": b"\0alice\0quarry-secret"}


def edit(message: Message, change: Callable[[Values], object]) -> tuple[bytes, str]:
    line = json.loads(editable_text(*message))
    change(line)
    return edited_frame(*message, json.dumps(line))


def refused(message: Message, change: Callable[[Values], object]) -> str:
    with pytest.raises(EditError) as found:
        edit(message, change)
    return str(found.value)


@pytest.mark.parametrize("name", REQUESTS)
def test_what_was_not_edited_is_the_same_frame(name: str) -> None:
    message = request(name)
    assert edit(message, lambda line: None) == (message[1], "")


def test_a_login_is_shown_masked_and_not_edited() -> None:
    message = request("SaslAuthenticate", LOGIN, 2)
    assert "quarry" not in message_text(*message)
    assert LOGIN["auth_bytes"].hex() not in message_text(*message)
    with pytest.raises(EditError, match=MAY_BE_SECRET):
        editable_text(*message)
    text = editable_text(*message, show_secrets=True).replace(b"alice".hex(), b"carol".hex())
    made, paths = edited_frame(*message, text)
    assert (made, paths) == (message[1].replace(b"alice", b"carol"), "request.body.auth_bytes")


def test_a_message_whose_api_is_unknown_is_masked_and_not_edited() -> None:
    _, frame = request("Heartbeat")
    frame = frame[:4] + (999).to_bytes(2, "big") + frame[6:]
    message = held(999, 3, frame), frame
    assert b"readers".hex() not in message_text(*message)
    with pytest.raises(EditError, match=MAY_BE_SECRET):
        editable_text(*message)
    with pytest.raises(EditError, match=NOT_WHOLE):
        editable_text(*message, show_secrets=True)


def test_a_message_that_is_cut_or_longer_is_not_edited() -> None:
    whole, frame = request("Heartbeat")
    short = (len(frame) - 7).to_bytes(4, "big") + frame[4:-3]
    for message in (request("Heartbeat", extra=b"more"), (whole._replace(size=len(short)), short)):
        with pytest.raises(EditError, match=MAY_BE_SECRET):
            editable_text(*message)
        with pytest.raises(EditError, match=NOT_WHOLE):
            editable_text(*message, show_secrets=True)


def test_a_message_that_would_be_written_otherwise_is_not_edited() -> None:
    """A size of a compact string in two bytes, though one is enough: it is read, and written in one."""
    message, frame = request("Heartbeat", version=4)
    at = frame.index(b"readers")
    longer = frame[: at - 1] + bytes([frame[at - 1] | 0x80, 0]) + frame[at:]
    longer = (len(longer) - 4).to_bytes(4, "big") + longer[4:]
    assert edit((message, frame), lambda line: None)[1] == ""
    with pytest.raises(EditError, match="it can't be encoded to the same bytes again, so it can't be edited"):
        editable_text(held(message.api_key, 4, longer), longer)


def test_a_message_has_a_size_up_to_which_it_is_edited() -> None:
    message, frame = request("Heartbeat")
    assert editable_text(message._replace(size=MOST_EDITED), frame)
    with pytest.raises(EditError, match=r"are too large to edit: 4\.2 MB at most"):
        editable_text(message._replace(size=MOST_EDITED + 1), frame)


def test_fields_that_differ_are_named_up_to_a_number() -> None:
    def topics(count: int) -> Callable[[Values], object]:
        def change(line: Values) -> None:
            for each in line["request"]["body"]["topics"][:count]:
                each["name"] += "-2"

        return change

    message = request("Metadata", {"topics": [{"name": f"orders-{number}"} for number in range(30)]}, 9)
    _, paths = edit(message, topics(1))
    assert paths == "request.body.topics[0].name"
    _, paths = edit(message, topics(MOST_PATHS))
    assert (paths.count(", "), paths.endswith(f"topics[{MOST_PATHS - 1}].name")) == (MOST_PATHS - 1, True)
    _, paths = edit(message, topics(MOST_PATHS + 1))
    assert paths.endswith(f"topics[{MOST_PATHS - 1}].name and 1 more")


@pytest.mark.parametrize("text", ["", "{", "[1]", "3", '{"request": ' * 100_000, "9" * 5000])
def test_a_text_that_is_no_line_is_one_plain_line(text: str) -> None:
    with pytest.raises(EditError) as found:
        edited_frame(*request("Heartbeat"), text)
    assert "\n" not in str(found.value)
    assert str(found.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda line: line.pop("request"), "request is missing"),
        (lambda line: line.update(request=None), "request is missing"),
        (lambda line: line.update(request=[]), "request: "),
        (lambda line: line["request"]["body"].update(group_id=7), "request.body.group_id: 7 "),
        (lambda line: line["request"]["body"].update(generation_id=1 << 31), "request.body.generation_id: "),
        (lambda line: line["request"]["body"].update(grop_id="x"), "request.body.grop_id: "),
        (lambda line: line["request"].update(rest="00"), "the edited message can't be read back"),
        (lambda line: line["request"]["header"].update(correlation_id=8),
         "request.header.correlation_id can't be changed: the other side could not match the message"),
        (lambda line: line["request"]["header"].update(request_api_key=13), "request.header.request_api_key: "),
        (lambda line: line["request"]["header"].update(request_api_version=2), "request.header.request_api_version: "),
    ],
)  # fmt: skip
def test_what_can_not_take_its_place_is_refused(change: Callable[[Values], Any], words: str) -> None:
    assert refused(request("Heartbeat"), change).startswith(words)


def test_numbers_are_taken_up_to_the_largest() -> None:
    made, paths = edit(request("Heartbeat"), lambda line: line["request"]["body"].update(generation_id=(1 << 31) - 1))
    assert (made.count(b"\x7f\xff\xff\xff"), paths) == (1, "request.body.generation_id")


def test_the_api_and_the_version_above_the_message_are_its_own() -> None:
    """What names them beside the message is there to be read: it can't be another, and changes nothing."""
    message = request("Heartbeat")
    assert edit(message, lambda line: line.update(api="Fetch", api_key=1, api_version=1)) == (message[1], "")


def test_whether_there_is_a_response_stays() -> None:
    words = "request.body.acks: with 0 there is no response, and an edit can't change whether there is one"
    assert refused(request("Produce"), lambda line: line["request"]["body"].update(acks=0)) == words
    assert edit(request("Produce"), lambda line: line["request"]["body"].update(acks=1))[1] == "request.body.acks"
    body = REQUESTS["Produce"][1] | {"acks": 0}
    assert refused(request("Produce", body), lambda line: line["request"]["body"].update(acks=-1)) == words


def test_a_response_keeps_its_correlation_id() -> None:
    message = response("Heartbeat", 3, {"error_code": 0})
    made, paths = edit(message, lambda line: line["response"]["body"].update(error_code=27))
    assert (made[-2:], paths) == ((27).to_bytes(2, "big"), "response.body.error_code")
    words = refused(message, lambda line: line["response"]["header"].update(correlation_id=8))
    assert words.startswith("response.header.correlation_id can't be changed")


def test_one_side_is_edited_and_the_other_is_not_looked_at() -> None:
    message = response("Heartbeat", 3, {"error_code": 0})
    assert edit(message, lambda line: line.update(request={"body": {"group_id": 7}})) == (message[1], "")


def test_records_are_left_out_and_counted() -> None:
    def change(line: Values) -> None:
        [batch] = line["request"]["body"]["topic_data"][0]["partition_data"][0]["records"]["batches"]
        batch["records"].pop()

    message = request("Produce")
    made, paths = edit(message, change)
    assert (b"two" in made, b"one" in made) == (False, True)
    again = json.loads(editable_text(message[0]._replace(size=len(made)), made))
    [batch] = again["request"]["body"]["topic_data"][0]["partition_data"][0]["records"]["batches"]
    assert (batch["crc_valid"], batch["last_offset_delta"], batch["records_count"]) == (True, 0, 1)
    assert ".records.batches[0]" in paths
