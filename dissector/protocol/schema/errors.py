"""Kafka's errors: their names, whether a client may retry, and what it should do.

`make schemas` prints `errors.json` from Apache's class (`org.apache.kafka.common.protocol.Errors` of the newest
imported release). `error_advice.json` is written by hand, by names of errors. An unknown code is not a mistake: a
newer broker may have sent it.
"""

from functools import cache
from typing import Final, NamedTuple

from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.model import SchemaError
from dissector.protocol.schema.resources import read_json

EXPECTED_ERRORS: Final = frozenset((
    ("ApiVersionsResponse", ErrorCode.UNSUPPORTED_VERSION),
    ("JoinGroupResponse", ErrorCode.MEMBER_ID_REQUIRED),
))  # fmt: skip
"""Errors that are steps of the protocol, each with its response: after UNSUPPORTED_VERSION a client asks again in a
lower version (KIP-511), after MEMBER_ID_REQUIRED a new member joins again with its id (KIP-394)."""


class ErrorInfo(NamedTuple):
    """An error: its code on the wire (int16) and its name in Kafka's sources.

    `advice` is one sentence on what it means for a client, and what the client or its operator should do.
    """

    code: int
    name: str
    retriable: bool
    advice: str


def error_name(code: int) -> str:
    """Return ``NONE`` for 0, ``UNKNOWN_TOPIC_OR_PARTITION`` for 3, ``UNKNOWN(1234)`` for unknown codes."""
    found = known_errors().get(code)
    return found.name if found else f"UNKNOWN({code})"


def is_retriable(code: int) -> bool:
    """Return whether Kafka's client would retry. False for unknown codes."""
    found = known_errors().get(code)
    return found is not None and found.retriable


def is_expected(message: str | None, code: int) -> bool:
    """Return whether an error is a normal step of the protocol in this message."""
    return (message, code) in EXPECTED_ERRORS


def advice(code: int) -> str:
    """Return what an error asks of a client. Empty for success and for unknown codes."""
    found = known_errors().get(code)
    return found.advice if found and code else ""


@cache
def known_errors() -> dict[int, ErrorInfo]:
    """Return every known error by code, in the order of codes."""
    rows, sentences = read_json("errors.json"), read_json("error_advice.json")
    try:
        found = {
            row["code"]: ErrorInfo(row["code"], row["name"], row["retriable"], sentences[row["name"]]) for row in rows
        }
    except (TypeError, KeyError) as error:
        raise SchemaError(f"errors.json, error_advice.json: cannot be read: {error!r}") from error
    return dict(sorted(found.items()))
