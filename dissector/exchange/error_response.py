"""The finding about each error of a response: made where a response is decoded, as many rows have one.

Other findings of one message are made by detectors (`findings.framework.message_detector`), or, where they need no
field (no response, bytes missing, an unknown version), where they are noticed.
"""

from collections import Counter
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.info_column import ERROR_CODES, ERROR_RESPONSE
from dissector.exchange.model import ExchangeMessage
from dissector.protocol.codec.structs import values_of
from dissector.protocol.schema.error_codes import ErrorCode
from dissector.protocol.schema.errors import advice, error_name, is_expected
from dissector.protocol.schema.loader import api

_KNOWN: Final = frozenset(int(each) for each in ErrorCode if each)


def error_response(api_key: int, response: ExchangeMessage | None) -> list[Finding]:
    """One for each different error of a response: its name, then what the client should do. An error that is a step of
    the protocol is a note. Of a body that does not fit its layout the error beside a message that can be read."""
    if response is None:
        return []
    if response.rest or response.masked_size:
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
