"""A message that waits as JSON for an editor, and back: the same JSON that `show` prints and `encode` reads.

Invariants:
  * what is edited differs from what came in what was edited, and in nothing else: a message that can't be written as it
    was read can't be edited;
  * a message with a secret can't be edited, nor one that may have one and is not understood: it is shown masked
    (`protocol/masking.py`), and no editor's file has it;
  * a message that is written can be read to its end, and takes the place of the one that waited: correlation id, API,
    version, and whether there is a response are the same.

All that can go wrong is an `EditError`, one plain line.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dissector.capture.held_messages import HeldMessage
from dissector.core.json_text import dumps
from dissector.core.text import byte_size, clean
from dissector.exchange.from_json import frames_of_exchange
from dissector.exchange.model import ExchangeMessage
from dissector.exchange.to_json import message_object
from dissector.protocol.embedded.context import DecodingContext
from dissector.protocol.message import read
from dissector.protocol.message_layout import MessageLayout, request_layout, response_layout
from dissector.protocol.schema.api_keys import ApiKey
from dissector.protocol.schema.loader import api_name
from dissector.protocol.wire import EncodeError

MOST_EDITED: Final = 4 << 20
"""Bytes of a frame that is shown and edited."""
MOST_PATHS: Final = 20
_ON_A_CONNECTION_WITH_SECRETS: Final = DecodingContext(may_have_secrets=True, has_secrets=True)
_UNREAD: Final = frozenset(("malformed", "trailing-bytes", "unknown-version", "unknown-api", "over-limit"))
_NOT_EDITED: Final = ("time_ns", "size", "masked")


class EditError(ValueError):
    """A message that can't be edited, or what was made of it; one plain line."""


def message_text(held: HeldMessage, frame: bytes, *, show_secrets: bool = False) -> str:
    """Return a message as JSON, to be looked at; secrets are masked unless they are shown."""
    return dumps(_line(held, frame, show_secrets=show_secrets), indented=True).decode()


def editable_text(held: HeldMessage, frame: bytes, *, show_secrets: bool = False) -> str:
    """Return the same, to be edited. Raises `EditError`."""
    if held.size > MOST_EDITED:
        raise EditError(f"{byte_size(held.size)} are too large to edit: {byte_size(MOST_EDITED)} at most")
    message = _message(held, frame, show_secrets=show_secrets)
    if message.masked or message.masked_size:
        raise EditError("it may hold a secret and can't be edited: send it on unchanged, or drop it")
    if message.rest or {each.code for each in message.findings} & _UNREAD:
        raise EditError("it can't be read to its end, so it can't be edited: send it on unchanged, or drop it")
    text = message_text(held, frame, show_secrets=show_secrets)
    try:
        is_same = _encoded(held, _parsed(text)) == frame
    except EditError:
        is_same = False
    if not is_same:
        raise EditError(
            "it can't be encoded to the same bytes again, so it can't be edited: send it on unchanged, or drop it"
        )
    return text


def edited_frame(held: HeldMessage, frame: bytes, text: str) -> tuple[bytes, str]:
    """Return the frame that an edited text describes, and the paths of the fields that differ; the same frame and no
    path if nothing was edited. Raises `EditError`."""
    line = _parsed(text)
    made = _encoded(held, line)
    if made == frame:
        return frame, ""
    layout = _layout(held, made)
    before, after = read(frame, _layout(held, frame)), read(made, layout)
    if after.rest or not after.header or {each.code for each in after.findings} & _UNREAD:
        raise EditError("the edited message can't be read back")
    side = "request" if held.from_client else "response"
    for name in ("correlation_id", "request_api_key", "request_api_version"):
        if before.header.get(name) != after.header.get(name):
            raise EditError(f"{side}.header.{name} can't be changed: the other side could not match the message")
    if held.from_client and held.api_key == ApiKey.PRODUCE and (before.body["acks"] == 0) != (after.body["acks"] == 0):
        raise EditError("request.body.acks: with 0 there is no response, and an edit can't change whether there is one")
    first = _line(held, frame, show_secrets=True)
    paths = list(_differing(first, _line(held, made, show_secrets=True), ""))
    more = f" and {len(paths) - MOST_PATHS} more" if len(paths) > MOST_PATHS else ""
    return made, clean(", ".join(paths[:MOST_PATHS]) + more) or side


def _layout(held: HeldMessage, frame: bytes) -> MessageLayout:
    layout = request_layout if held.from_client else response_layout
    return layout(held.api_key, held.api_version, frame)


def _message(held: HeldMessage, frame: bytes, *, show_secrets: bool) -> ExchangeMessage:
    return ExchangeMessage.of_frame(
        held.since_ns, len(frame), frame, len(frame), _layout(held, frame), _ON_A_CONNECTION_WITH_SECRETS,
        show_secrets=show_secrets,
    )  # fmt: skip


def _line(held: HeldMessage, frame: bytes, *, show_secrets: bool) -> dict[str, Any]:
    message = message_object(_message(held, frame, show_secrets=show_secrets))
    side = {name: value for name, value in message.items() if name not in _NOT_EDITED}
    return {
        "api": api_name(held.api_key), "api_version": held.api_version,
        "request" if held.from_client else "response": side,
    }  # fmt: skip


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        line = json.loads(text)
    except json.JSONDecodeError as error:
        raise EditError(f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise EditError("not JSON: nested too deeply, or a number is too long") from None
    if not isinstance(line, Mapping):
        raise EditError("no JSON object")
    return line


def _encoded(held: HeldMessage, line: Mapping[str, Any]) -> bytes:
    """Return the frame of a line, whose API, version and side are the message's. Raises `EditError`."""
    side = "request" if held.from_client else "response"
    line = {"api_key": held.api_key, "api_version": held.api_version, side: _counted(line.get(side))}
    try:
        frame = frames_of_exchange(line)[not held.from_client]
    except EncodeError as error:
        raise EditError(clean(str(error))) from None
    except RecursionError:
        raise EditError("nested too deep") from None
    if frame is None or frame.missing:
        raise EditError(f"{side} is missing")
    return frame.data


def _counted(value: Any) -> Any:
    """Return values in which batches that got or lost records say no more how many there were: the writer counts."""
    if isinstance(value, list):
        return [_counted(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _counted(inner) for name, inner in value.items()}
    count, records = found.get("records_count"), found.get("records")
    if isinstance(records, list) and isinstance(count, int) and len(records) != count:
        found.pop("last_offset_delta", None)
    return found


def _differing(one: Any, other: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields that differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in [*one, *(each for each in other if each not in one)]:
            where = f"{path}.{name}" if path else str(name)
            if (name in one) != (name in other):
                yield where
            elif one[name] != other[name]:
                yield from _differing(one[name], other[name], where)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            if left != right:
                yield from _differing(left, right, f"{path}[{number}]")
    else:
        yield path
