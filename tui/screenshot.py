"""Pictures of a screen as SVG, with a text element for each word.

Rich writes one for each run of a style, with the spaces in it. Converters collapse those at the ends, and take widths
from a font of their own: what follows is out of its column then.
"""

import html
import re
from typing import Final

from rich.cells import cell_len

_TEXT: Final = re.compile(
    r'<text class="([^"]+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"([^>]*)>([^<]*)</text>'
)
_WORD: Final = re.compile(r"[^ \xa0]+")


def one_text_a_word(svg: str) -> str:
    """Return the picture with each word at a place of its own."""
    return _TEXT.sub(_words, svg)


def _words(element: re.Match[str]) -> str:
    kind, x, y, length, rest, escaped = element.groups()
    text = html.unescape(escaped)
    if not text:
        return element[0]
    cell = float(length) / len(text)  # Rich counts characters here, and cells for places
    return "".join(
        f'<text class="{kind}" x="{float(x) + cell * cell_len(text[: word.start()]):.1f}" y="{y}" '
        f'textLength="{cell * cell_len(word[0]):.1f}"{rest}>{html.escape(word[0])}</text>'
        for word in _WORD.finditer(text)
    )
