"""The forms that exchanges are shared in, and the endings of files that have them."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class ExportFormat(StrEnum):
    """What is written."""

    PCAPNG = "pcapng"
    TRANSCRIPT = "transcript"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"
    PYTEST = "pytest"
    COMMAND = "command"


SUFFIXES: Final = MappingProxyType(
    {
        ".pcapng": ExportFormat.PCAPNG,
        ".txt": ExportFormat.TRANSCRIPT,
        ".hex": ExportFormat.TRANSCRIPT,
        ".json": ExportFormat.JSON,
        ".ndjson": ExportFormat.JSON,
        ".mmd": ExportFormat.MERMAID,
        ".svg": ExportFormat.SVG,
        ".py": ExportFormat.PYTEST,
        ".sh": ExportFormat.COMMAND,
    }
)
"""The first one of a form is the usual one."""


def suffix_of(form: ExportFormat) -> str:
    """How the name of a file of this form ends, with the dot."""
    return next(name for name, each in SUFFIXES.items() if each is form)
