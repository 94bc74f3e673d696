"""Output of commands that write one file: by `written_files`, or to standard output."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dissector.capture.errors import CaptureError
from dissector.core.files import write_reason
from dissector.core.written_files import PRIVATE, replaced

STDOUT: Final = "-"


def save(chunks: Iterable[bytes], out: str, mode: int = PRIVATE) -> None:
    """Write a file, which only its user may read unless another mode is given, or to standard output. Raises
    `CaptureError`."""
    if out == STDOUT:
        sys.stdout.buffer.writelines(chunks)
        return
    try:
        with replaced(out, mode) as file:
            file.writelines(chunks)
    except OSError as error:
        raise CaptureError(f"{out}: {write_reason(out, error)}") from None


def is_same_file(name: str, out: str) -> bool:
    """Return whether an output would be written over an input."""
    try:
        return Path(name).samefile(out)
    except (OSError, ValueError):
        return False
