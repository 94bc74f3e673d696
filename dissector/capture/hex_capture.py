"""Hex text as a capture: it becomes conversations with made-up addresses and times."""

from dissector.capture.errors import MAX_FINDINGS, CaptureError
from dissector.conversation import Conversation, packets, pcapng
from dissector.conversation.hex_text import HexError, HexForm
from dissector.conversation.transcript import turns_of
from dissector.conversation.turns import MADE_UP_SERVER, made_up_client
from dissector.core.finding import Finding, Severity
from dissector.core.text import counted


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
    findings += [Finding("frame-size", Severity.WARNING, f"{name}: {words}") for words in _first(problems)]
    conversations = [
        Conversation(made_up_client(number), MADE_UP_SERVER, turns, closed=False)
        for number, turns in enumerate(turns_by_conversation.values())
    ]
    return b"".join(pcapng(packets(conversations), words)), findings


def _first(problems: list[str]) -> list[str]:
    """Return the first problems, and a line that counts the others."""
    more = len(problems) - MAX_FINDINGS
    return problems if more <= 0 else [*problems[:MAX_FINDINGS], f"{counted(more, 'more line')} with wrong sizes"]
