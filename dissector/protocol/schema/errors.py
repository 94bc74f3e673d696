"""Kafka's error codes: their names, and whether a client may try again.

`errors.json` is printed by Apache's own class (`org.apache.kafka.common.protocol.Errors` of the newest release that
the tables have), by `make schemas`. An unknown code is no mistake here: a newer broker may have sent it.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from dissector.protocol.schema.model import SchemaError


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error as it stands on the wire (`code`, int16) and in Kafka's sources (`name`)."""

    code: int
    name: str
    retriable: bool


def error_name(code: int) -> str:
    """``NONE`` for 0, ``UNKNOWN_TOPIC_OR_PARTITION`` for 3, ``UNKNOWN(1234)`` for what this release does not know."""
    found = error_codes().get(code)
    return found.name if found else f"UNKNOWN({code})"


def is_retriable(code: int) -> bool:
    """Whether Kafka's own client would try again. False for codes that this release does not know."""
    found = error_codes().get(code)
    return found is not None and found.retriable


@cache
def error_codes() -> dict[int, ErrorCode]:
    """Every known error by its code, in the order of the codes."""
    try:
        rows = json.loads(files("dissector.protocol.schema").joinpath("errors.json").read_text(encoding="utf-8"))
        found = {row["code"]: ErrorCode(row["code"], row["name"], row["retriable"]) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SchemaError(f"errors.json: cannot be read: {error!r}") from error
    return dict(sorted(found.items()))
