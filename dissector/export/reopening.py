"""As how many rows an export opens again: not always as many as were written."""

from pathlib import Path
from typing import Final

from dissector.capture import CaptureError
from dissector.capture_session import Capture
from dissector.core.text import counted
from dissector.index.exchange_table import RowKind

LARGEST: Final = 1 << 26
"""Bytes of a file whose rows are counted."""


def reopens_as(path: Path, written: int) -> str:
    """Say as how many rows a file opens, of which so many were written: there are gaps where other packets were, and
    other rows that are in the same packets. Empty if it is too large to look, or a device or a pipe."""
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > LARGEST):
            return ""
        with Capture([str(path)]) as capture:
            for _ in capture.read():
                pass
            kinds = capture.index.kinds()
    except (CaptureError, OSError) as error:
        return f"; it can't be opened again: {error}"
    gaps = int((kinds == RowKind.GAP).sum())
    others = len(kinds) - gaps - written
    words = [counted(gaps, "gap between them", "gaps between them")] if gaps else []
    words += [f"{others:,} more in the same packets"] if others > 0 else []
    return f"; it reopens as {counted(len(kinds), 'row')}{': ' if words else ''}{', '.join(words)}"
