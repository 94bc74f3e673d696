"""Kafka's error codes: their names, whether a client may try again, and what it should do.

`errors.json` is printed by Apache's own class (`org.apache.kafka.common.protocol.Errors` of the newest release that
the tables have), by `make schemas`; `error_advice.json` is ours, kept by hand, by the errors' names. An unknown
code is no mistake here: a newer broker may have sent it.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.model import SchemaError
from dissector.protocol.schema.resources import read_json

EXPECTED_ERRORS: Final = frozenset((
    ("ApiVersionsResponse", ErrorCode.UNSUPPORTED_VERSION),
    ("JoinGroupResponse", ErrorCode.MEMBER_ID_REQUIRED),
))  # fmt: skip
"""Errors that are steps of the protocol, each with the message that bears it: UNSUPPORTED_VERSION, to which a client
asks again lower (KIP-511), and MEMBER_ID_REQUIRED, to which a new member joins again with its id (KIP-394)."""


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """An error as it stands on the wire (`code`, int16) and in Kafka's sources (`name`).

    `advice` is one sentence on what it means for a client and what the client, or who runs it, should do.
    """

    code: int
    name: str
    retriable: bool
    advice: str


def error_name(code: int) -> str:
    """``NONE`` for 0, ``UNKNOWN_TOPIC_OR_PARTITION`` for 3, ``UNKNOWN(1234)`` for what this release does not know."""
    found = known_errors().get(code)
    return found.name if found else f"UNKNOWN({code})"


def is_retriable(code: int) -> bool:
    """Whether Kafka's own client would try again. False for codes that this release does not know."""
    found = known_errors().get(code)
    return found is not None and found.retriable


def is_expected(message: str | None, code: int) -> bool:
    """Whether an error of this message is a step of the protocol, and nothing has gone wrong."""
    return (message, code) in EXPECTED_ERRORS


def advice(code: int) -> str:
    """What an error asks of a client. Nothing for success, and for codes that this release does not know."""
    found = known_errors().get(code)
    return found.advice if found and code else ""


@cache
def known_errors() -> dict[int, ErrorInfo]:
    """Every known error by its code, in the order of the codes."""
    rows, sentences = read_json("errors.json"), read_json("error_advice.json")
    try:
        found = {
            row["code"]: ErrorInfo(row["code"], row["name"], row["retriable"], sentences[row["name"]]) for row in rows
        }
    except (TypeError, KeyError) as error:
        raise SchemaError(f"errors.json, error_advice.json: cannot be read: {error!r}") from error
    return dict(sorted(found.items()))
