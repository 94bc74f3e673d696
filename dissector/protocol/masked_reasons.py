"""What is said of a message that is masked as it was not read to its end: the reason, without bytes of what is masked;
and the first fields, which can be no part of a secret.

Invariants:
  * a reason has the path and the offset of what does not fit, its kind, and counts and lengths of bytes; a number from
    the wire stands in it only if two letters can't be one (`LARGEST`): all larger ones are ``over 8,191``;
  * a field is one of the first only if bytes of a login that a wrong size prefix or API key put in its place show less
    than six bytes of a secret (`UNPROVEN`, `UNPROVEN_OF_REQUEST`).
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from dissector.core.finding import Finding
from dissector.protocol.embedded.public_configs import is_harmless_error
from dissector.protocol.tree import Node

MALFORMED: Final = "malformed"
OVER_LIMIT: Final = "over-limit"
TRAILING: Final = "trailing-bytes"
UNREAD: Final = frozenset((MALFORMED, TRAILING, OVER_LIMIT))
"""Codes of findings of a message that was not read to its end."""
LARGEST: Final = (1 << 13) - 1
"""Printable characters are 0x20 and above, so two of them are a larger number."""
UNPROVEN: Final = 8
"""Bytes of fields that follow each other and may be of another message, as may be the byte before the body, which says
how many tagged fields the header has: four of that message's size, and five of what it says."""
UNPROVEN_OF_REQUEST: Final = 7
"""The same of a request, which may be a login whose API key is damaged: a count of tagged fields, a compact length, and
five bytes of the token."""
_FIXED: Final = frozenset(("BOOLEAN", "INT8", "INT16", "UINT16", "UINT32", "INT32", "INT64"))
_NUMBER: Final = re.compile(r"(-?)(\d[\d,]*)")

_END: Final = re.compile(r"past the end|^ends inside")
_TAG: Final = re.compile(r"\(tag [^)]*\)")


def is_of_end(finding: Finding) -> bool:
    """Whether a finding says no more than that a message ends too early."""
    return finding.code == MALFORMED and _END.search(finding.message) is not None


def reasons_of(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that say why a message was not read to its end, without content."""
    return tuple(
        replace(each, message=_without_content(each.message), path=_TAG.sub(_small_tag, each.path))
        for each in findings
        if each.code in UNREAD
    )


def _without_content(words: str) -> str:
    error, _, offset = words.partition(", at offset ")
    return f"{_NUMBER.sub(_small, error)}, at offset {offset}" if offset else words


def _small(number: re.Match[str]) -> str:
    sign, digits = number.groups()
    is_small = int(digits.replace(",", "")) <= LARGEST
    return number[0] if is_small else f"{'under -' if sign else 'over '}{LARGEST:,}"


def _small_tag(tag: re.Match[str]) -> str:
    return _NUMBER.sub(_small, tag[0])


def first_fields(body: Node, *, is_request: bool) -> int:
    """Return where the first fields of a body end: numbers, up to the first field of no fixed size, but for an error
    message that is known to quote nothing; of an array its count and its first element."""
    end, proven = body.start, body.start
    most = UNPROVEN_OF_REQUEST if is_request else UNPROVEN
    for node in _first(body):
        if node.name == "error_message" and node.value and is_harmless_error(str(node.value)):
            end = proven = node.end
        elif node.end - proven <= most:
            end = node.end
        else:
            break
    return end


def _first(node: Node) -> Iterable[Node]:
    """Yield the leaves of first fields, and those that may be some of them by their values."""
    stack = [node]
    while stack:
        each = stack.pop()
        is_array = each.type.endswith("ARRAY")
        if is_array and each.children:
            stack = list(each.children[1:2])  # nothing behind an array is where it seems to be
            yield each.children[0]
        elif each.type == "STRUCT":
            stack += reversed(each.children)
        elif each.type in _FIXED or (each.name == "error_message" and _is_harmless(each.value)):
            yield each
        else:
            return


def _is_harmless(value: object) -> bool:
    return value is None or (isinstance(value, str) and is_harmless_error(value))
