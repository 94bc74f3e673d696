"""Text broken into lines at words, where there is room for several."""

from rich.cells import set_cell_size
from rich.console import Console
from rich.text import Text


def fitted_lines(console: Console, text: Text, width: int, most: int) -> Text:
    """Return a text in at most so many lines of `width` cells; if it is longer, the last one ends with an ellipsis."""
    if text.cell_len <= width:
        return text
    lines = list(text.wrap(console, max(1, width)))
    for each in lines:
        each.rstrip()
    if len(lines) > most:
        rest = Text(" ").join(lines[most - 1 :])
        rest.truncate(width, overflow="ellipsis")
        lines[most - 1 :] = [rest]
    return Text("\n").join(lines)


def first_part(text: str, width: int) -> tuple[str, str]:
    """Return what of a text fits into `width` cells, at least a character and up to a blank where there is one, and the
    rest."""
    most = max(1, len(set_cell_size(text, width).rstrip()))
    if most >= len(text):
        return text, ""
    at = text.rfind(" ", 1, most + 1)
    return (text[:at], text[at + 1 :]) if at > 0 else (text[:most], text[most:])
