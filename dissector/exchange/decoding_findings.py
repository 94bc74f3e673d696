"""Findings that are made where a message is decoded: one about each error of a response, as many rows have one; and
that a message, which does not fit its layout, has another one to its last byte.

Other findings of one message are made by detectors (`findings.framework.detector`), or, where they need no field (no
response, bytes missing, an unknown version), where they are noticed.

Invariant: the work for messages that don't fit is bounded by connection, API, version and side: after `MOST_TRIED`
messages that fit nothing no more of them are searched. What fit the last one is tried first, so that a peer that always
makes the same mistake costs one walk a message.
"""

from collections import Counter, OrderedDict
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.finding_words import ERROR_RESPONSE
from dissector.exchange.info_column import READS_AS
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.structs import values_of
from dissector.protocol.exact_readings import ExactReading, exact_readings, fits
from dissector.protocol.message_layout import MessageLayout
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import advice, error_name, is_expected
from dissector.protocol.schema.field_names import ERROR_CODES
from dissector.protocol.schema.loader import api, api_name

_KNOWN: Final = frozenset(int(each) for each in ErrorCode if each)


def error_response(api_key: int, response: ExchangeMessage | None) -> list[Finding]:
    """One for each different error of a response: its name, then what the client should do. An error that is a step of
    the protocol is a note. Of a body that does not fit its layout the error beside a message that can be read."""
    if response is None:
        return []
    if response.masked_size or response.rest:
        return _error_at_top(api_key, response)
    codes = values_of(response.layout, response.body, ERROR_CODES)
    if not any(codes):
        return []
    return _errors(api_key, Counter(code for code in codes if isinstance(code, int) and code))


def _error_at_top(api_key: int, response: ExchangeMessage) -> list[Finding]:
    """The error of the response as a whole, where its body does not fit its layout behind it. A message shows that the
    code is one."""
    code, message = response.known_body.get("error_code"), response.known_body.get("error_message")
    if isinstance(message, str) and isinstance(code, int) and code in _KNOWN:
        return _errors(api_key, Counter((code,)))
    return []


def _errors(api_key: int, counts: Counter[int]) -> list[Finding]:
    known = api(api_key)
    found = []
    for name, code, count in sorted((error_name(code), code, count) for code, count in counts.items()):
        times = f"{name} ({count} times)" if count > 1 else name
        severity = Severity.NOTE if known and is_expected(known.response, code) else Severity.WARNING
        words = ": ".join(filter(None, (times, advice(code))))
        found.append(Finding(ERROR_RESPONSE, severity, words, "response.body"))
    return found


MOST_TRIED: Final = 8
"""Messages of a connection, an API, a version and a side that are searched without success."""
MOST_KINDS: Final = 4_096
Kind = tuple[int, int, int, bool]
"""Connection, API, version, and whether it is a request."""


class _Tried:
    """What was tried of a kind of messages."""

    def __init__(self) -> None:
        self.failed = 0
        self.last: tuple[ExactReading, ...] = ()


class ExactReadings:
    """Of one capture."""

    def __init__(self) -> None:
        self._tried: OrderedDict[Kind, _Tried] = OrderedDict()

    def finding(self, kind: Kind, data: bytes, size: int, layout: MessageLayout) -> Finding | None:
        """Return the finding of a message that does not fit `layout`; None if it fits no other one either."""
        tried = self._tried.get(kind)
        if tried is None:
            tried = self._tried[kind] = _Tried()
            if len(self._tried) > MOST_KINDS:
                self._tried.popitem(last=False)
        found = tuple(each for each in tried.last if size == len(data) and fits(data, layout, each))
        if not found and tried.failed < MOST_TRIED:
            found = exact_readings(data, size, layout, kind[1])
        if not found:
            tried.failed += 1
            return None
        tried.last = found
        return reads_as(found, kind[1], is_request=kind[3])


def reads_as(found: tuple[ExactReading, ...], key: int, *, is_request: bool) -> Finding:
    """Return the finding of a message that has these layouts."""
    words = ", or as ".join(f"{api_name(key)} {each.words}" for each in found)
    return Finding(READS_AS, Severity.NOTE, f"reads exactly as {words}", "request" if is_request else "response")
