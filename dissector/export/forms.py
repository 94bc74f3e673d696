"""The forms that exchanges are shared in, and the endings of files that have them."""

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Form(StrEnum):
    """What is written."""

    PCAPNG = "pcapng"
    TRANSCRIPT = "transcript"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"
    PYTEST = "pytest"
    COMMAND = "command"


ENDINGS: Final = MappingProxyType(
    {
        ".pcapng": Form.PCAPNG,
        ".txt": Form.TRANSCRIPT,
        ".hex": Form.TRANSCRIPT,
        ".json": Form.JSON,
        ".ndjson": Form.JSON,
        ".mmd": Form.MERMAID,
        ".svg": Form.SVG,
        ".py": Form.PYTEST,
        ".sh": Form.COMMAND,
    }
)
"""The first one of a form is the usual one."""


def ending(form: Form) -> str:
    """How the name of a file of this form ends, with the dot."""
    return next(name for name, each in ENDINGS.items() if each is form)
