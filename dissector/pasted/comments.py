"""Comments beside bytes, of programming languages and of people: what they say is no bytes."""

import re
from typing import Final

_BLOCKS: Final = (("/*", "*/"), ("(*", "*)"), ("{-", "-}"))
_REST: Final = re.compile(
    r"(?://|#(?!(?:producer|consumer)-[0-9])|(?<!<)--(?![->])|(?<!\S);|%(?![0-9a-fA-F]{2}|[0-7]\||[wi][\[({])"
    r"|(?<=[0-9a-fA-F,]) +(?:←|<-)|\bREM\b|…)[^\n]*"
)
"""`%7|` and `#producer-1` are of the lines that librdkafka logs, `%w[` opens a list of Ruby's."""
_KEPT: Final = re.compile(r"[^\n]")


def without_comments(text: str) -> str:
    """Return a text with blanks in place of its comments: places stay as they are."""
    for opening, closing in _BLOCKS:
        if opening in text:
            text = _without_blocks(text, opening, closing)
    return _REST.sub(lambda found: " " * len(found[0]), text)


def _without_blocks(text: str, opening: str, closing: str) -> str:
    parts: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start + len(opening))) >= 0:
        end += len(closing)
        parts += [text[at:start], _KEPT.sub(" ", text[start:end])]
        at = end
    return "".join([*parts, text[at:]])
