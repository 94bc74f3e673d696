"""Our colors, and how the panes use those of the theme: any other theme of Textual works too.

`hue0` to `hue7` tell APIs, latencies or connections apart in the list. They are made from the palette of Okabe and Ito,
which color-blind people can tell apart; each theme has them as light or dark as its background requires.
"""

from typing import Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from tui.row_colors import HUES

ON_DARK: Final = dict(
    zip(
        (f"hue{n}" for n in range(HUES)),
        ("#e69f00", "#56b4e9", "#2bbf92", "#cc79a7", "#f0e442", "#f0703a", "#6c9be8", "#b3b9c5"),
        strict=True,
    )
)
ON_LIGHT: Final = dict(
    zip(
        (f"hue{n}" for n in range(HUES)),
        ("#8f5f00", "#0f6ea8", "#00694c", "#8f3f6d", "#6b6200", "#a84300", "#0050a0", "#4a4f58"),
        strict=True,
    )
)
KDISSECT: Final = Theme(
    name="kdissect",
    primary="#5fb3d9",
    secondary="#8fa1b3",
    accent="#f0c674",
    warning="#e5b567",
    error="#e06c75",
    success="#98c379",
    foreground="#d8dee9",
    background="#12161c",
    surface="#161b22",
    panel="#1f2630",
    boost="#2a3442",
    dark=True,
    variables=ON_DARK,
)
LIGHT: Final = Theme(
    name="kdissect-light",
    primary="#1a6f9c",
    secondary="#5a6672",
    accent="#b06f00",
    warning="#8a5a00",
    error="#b3261e",
    success="#2f7d32",
    foreground="#1d2329",
    background="#eceff2",
    surface="#f8f9fa",
    panel="#dfe4e9",
    boost="#c6ced6",
    dark=False,
    variables=ON_LIGHT,
)
COLOR_BLIND: Final = Theme(
    name="kdissect-color-blind",
    primary="#56b4e9",
    secondary="#9aa5b1",
    accent="#f0e442",
    warning="#e69f00",
    error="#f0703a",
    success="#56b4e9",
    foreground="#e6e9ee",
    background="#101318",
    surface="#15191f",
    panel="#1e242d",
    boost="#2b3542",
    dark=True,
    variables=ON_DARK,
)
OURS: Final = (KDISSECT, LIGHT, COLOR_BLIND)


def bold(color: str) -> Style:
    """Return bold in a color of a theme, which may be one of the terminal's (`ansi_red`)."""
    return Style(color=Color.parse(color).rich_color, bold=True)


CSS: Final = (
    """
Screen { background: $background; }
ModalScreen { background: $background 60%; }
#title { height: 1; background: $panel; color: $foreground; padding: 0 1; }
LiveScreen #title { height: 2; }
#notice { height: auto; max-height: 3; background: $warning 25%; color: $foreground; padding: 0 1; display: none; }
#notice.shown { display: block; }
#empty { height: 1fr; content-align: center middle; text-align: center; color: $foreground; display: none; }
#empty.shown { display: block; }
#list { height: 9fr; background: $surface; scrollbar-size: 1 1; overflow-x: hidden; }
FilterBar { height: auto; display: none; background: $panel; }
FilterBar.shown { display: block; }
#filter-line { height: 1; }
#filter-sign { width: 3; padding: 0 0 0 1; color: $accent; text-style: bold; }
#filter-text { width: 1fr; background: $panel; border: none; padding: 0; }
FilterBar.open #filter-text { background: $boost; }
#filter-state { width: auto; padding: 0 1; }
#filter-error { height: 1; color: $warning; display: none; }
FilterBar.open #filter-error { display: block; }
#filter-offers {
  overlay: screen; constrain: inside inside; display: none; width: auto; min-width: 20; max-width: 90%; height: auto;
  max-height: 10; background: $panel; border: none; scrollbar-size: 1 1; text-wrap: nowrap; text-overflow: ellipsis;
}
#filter-offers.shown { display: block; }
#legend { height: auto; max-height: 2; background: $panel; padding: 0 1; display: none; }
#legend.shown { display: block; }
#lower { height: 11fr; }
#fields, #bytes {
  border-top: solid $boost; border-title-color: $secondary; background: $surface; scrollbar-size: 1 1;
}
#fields { width: 1fr; overflow-x: hidden; }
#bytes { width: 75; border-left: solid $boost; overflow-x: hidden; }
Screen.narrow #bytes { width: 42; }
Screen.slim #bytes { width: 26; }
#list:focus { background: $surface; }
#fields:focus, #bytes:focus { border-top: solid $primary; border-title-color: $primary; border-title-style: bold; }
#inspector { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
.maximized { height: 1fr; width: 1fr; }
.hidden { display: none; }

ExchangeList > .list--head { background: $panel; color: $secondary; text-style: bold; }
ExchangeList > .list--odd { background: $surface; }
ExchangeList > .list--cursor { background: $primary 20%; }
ExchangeList:focus > .list--cursor { background: $primary 40%; }
ExchangeList > .list--error { color: $error; }
ExchangeList > .list--warning { color: $warning; }
ExchangeList > .list--mark { color: $accent; text-style: bold; }
"""
    + "".join(f"ExchangeList > .list--hue{n} {{ color: $hue{n}; }}\n" for n in range(HUES))
    + """

FieldTree > .tree--guides { color: $boost; }
FieldTree > .tree--cursor { background: $boost; }
FieldTree:focus > .tree--cursor { background: $primary 35%; }

BytesPane > .bytes--offset { color: $secondary; }
BytesPane > .bytes--plain { color: $foreground 55%; }
BytesPane > .bytes--part0 { color: $primary; }
BytesPane > .bytes--part1 { color: $success; }
BytesPane > .bytes--shade0 { background: $accent; color: $background; text-style: bold; }
BytesPane > .bytes--shade1 { background: $primary 40%; color: $foreground; }
BytesPane > .bytes--shade2 { background: $primary 24%; color: $foreground; }
BytesPane > .bytes--shade3 { background: $primary 12%; color: $foreground 85%; }
BytesPane > .bytes--cursor { text-style: underline bold; }

#pages { height: 1; background: $panel; color: $secondary; padding: 0 1; text-wrap: nowrap; }
#lines, #sequence { height: 1fr; background: $surface; scrollbar-size: 1 1; overflow-x: hidden; }
LineList > .lines--cursor, SequenceView > .sequence--cursor { background: $primary 30%; }
LineList > .lines--head { color: $secondary; text-style: bold; }
SequenceView > .sequence--head { background: $panel; color: $secondary; text-style: bold; }
LineList > .lines--name { color: $foreground; }
LineList > .lines--bar, SequenceView > .sequence--bar { color: $primary; }
LineList > .lines--bad, SequenceView > .sequence--bad { color: $error; }
LineList > .lines--good, SequenceView > .sequence--good { color: $success; }
LineList > .lines--dim, SequenceView > .sequence--dim { color: $secondary; }

Menu, ColumnMenu { align: center middle; }
#menu { width: auto; max-width: 90%; min-width: 30; height: auto; max-height: 80%; border: round $primary; }
#menu { background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }

Prompt, WriteDialog { align: center middle; }
#prompt, #progress { width: 80%; max-width: 90; border: round $primary; background: $panel; }

FieldTree:nocolor > .tree--cursor { text-style: reverse; }
OptionList:nocolor > .option-list--option-highlighted { text-style: reverse; }

HelpScreen { align: center middle; }
#help {
  width: 74; max-width: 96%; height: auto; max-height: 92%; border: round $primary; background: $panel; padding: 1 2;
}
#help.wide { width: 150; }
"""
)
