"""The rules for findings of one exchange. A new one is a function here, and its explanation in `findings.explanations`.

`message_findings` says what a rule may see. Findings that need no field (no response, bytes missing, an unknown
version) are made where they are noticed: `decoder`, `protocol.message`, `protocol.records.tracing`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from dissector.core.finding import Finding, Severity
from dissector.exchange.info_column import ERROR_CODES, ERROR_RESPONSE
from dissector.exchange.message_findings import MessageRules, ReadFields
from dissector.protocol.schema.errors import advice, error_name, is_expected
from dissector.protocol.schema.loader import api

MESSAGE_RULES: Final = MessageRules()
message_finding: Final = MESSAGE_RULES.rule
ERROR_FIELDS: Final = tuple(f"response.**.{name}" for name in sorted(ERROR_CODES))


@message_finding(ERROR_RESPONSE, Severity.WARNING, reads=ERROR_FIELDS)
def error_response(fields: ReadFields) -> Iterator[Finding]:
    """One for each different error of a response: its name, then what the client should do. An error that is a step of
    the protocol is a note."""
    codes = fields.values(*ERROR_FIELDS)
    if not any(codes):
        return
    counts = Counter(code for code in codes if isinstance(code, int) and code)
    known = api(fields.api_key)
    for name, code, count in sorted((error_name(code), code, count) for code, count in counts.items()):
        times = f"{name} ({count} times)" if count > 1 else name
        severity = Severity.NOTE if known and is_expected(known.response, code) else Severity.WARNING
        yield fields.finding(": ".join(filter(None, (times, advice(code)))), "response.body", severity)
