"""Hex text as a capture: it becomes conversations with made-up addresses and times."""

from dissector.capture.errors import CaptureError
from dissector.conversation import Conversation, packets, pcapng
from dissector.conversation.hex_text import HexError, HexForm
from dissector.conversation.transcript import turns_of
from dissector.conversation.turns import MADE_UP_SERVER, made_up_client
from dissector.core.finding import Finding, Severity


def pcapng_from_hex(
    name: str, data: bytes, form: HexForm, *, unmarked_from_client: bool
) -> tuple[bytes, list[Finding]]:
    """Return a pcapng file, and findings about the text. Raises `CaptureError`."""
    try:
        turns_by_conversation, problems = turns_of(data, form, unmarked_from_client=unmarked_from_client)
    except HexError as error:
        raise CaptureError(f"{name}: {error}") from None
    words = f"{name}: {form.value}, not a capture: addresses and times are made up"
    if form is not HexForm.MARKED:
        words += f", and the {'client' if unmarked_from_client else 'server'} is taken to have sent it"
    findings = [Finding("synthetic-metadata", Severity.NOTE, words)]
    findings += [Finding("frame-size", Severity.WARNING, f"{name}: {problem}") for problem in problems]
    conversations = [
        Conversation(made_up_client(number), MADE_UP_SERVER, turns, closed=False)
        for number, turns in enumerate(turns_by_conversation.values())
    ]
    return b"".join(pcapng(packets(conversations), words)), findings
