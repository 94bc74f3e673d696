"""Hex as a capture: what it says becomes one conversation, at ends and at a time that nobody takes for real.

The time is that of the epoch's first nanosecond, for all.
"""

from dissector.capture.errors import CaptureError
from dissector.conversation import Conversation, packets, pcapng
from dissector.conversation.hex_text import Form, HexError
from dissector.conversation.transcript import turns_of
from dissector.conversation.turns import MADE_UP_CLIENT, MADE_UP_SERVER
from dissector.findings import Finding, Severity


def captured(name: str, data: bytes, form: Form, *, unmarked_from_client: bool) -> tuple[bytes, list[Finding]]:
    """A pcapng file, and what is to be said of it. Raises `CaptureError`."""
    try:
        turns, problems = turns_of(data, form, unmarked_from_client=unmarked_from_client)
    except HexError as error:
        raise CaptureError(f"{name}: {error}") from None
    words = f"{name}: {form.value}, not a capture: addresses and times are made up"
    if form is not Form.MARKED:
        words += f", and the {'client' if unmarked_from_client else 'server'} is taken to have sent it"
    findings = [Finding("made-up", Severity.NOTE, words)]
    findings += [Finding("frame-size", Severity.WARNING, f"{name}: {problem}") for problem in problems]
    return b"".join(
        pcapng(packets([Conversation(MADE_UP_CLIENT, MADE_UP_SERVER, turns, closed=False)]), words)
    ), findings
