"""Our colors, and how the panes use those of the theme: any other theme of Textual works too.

`hue0` to `hue7` tell APIs, latencies or connections apart in the list. They are made from the palette of Okabe and Ito,
which color-blind people can tell apart; each theme has them as light or dark as its background requires.

Invariant: any of `TEXT_COLORS` can be read on any of `BACKGROUNDS`, dimmed text too: the contrast is 4.5 or more (AA of
WCAG 2), in each of our themes. The style sheets use no others.
"""

from collections.abc import Mapping
from typing import Any, Final

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from tui.row_colors import HUES

BACKGROUNDS: Final = ("background", "surface", "panel", "boost", "cursor", "idle", "notice")
"""`cursor` is the line of the cursor in the pane with the focus, `idle` in the others, `notice` a warning's."""
BRIGHT: Final = ("accent", "warning")
"""Backgrounds of text in the color of the screen's background."""
TEXT_COLORS: Final = (
    "foreground", "secondary", "primary", "accent", "warning", "error", "success", *(f"hue{n}" for n in range(HUES)),
)  # fmt: skip
DIM: Final = 0.68
"""How much of its color dimmed text keeps; the rest is the background's. Textual keeps half, which is hard to read."""


def _hues(*colors: str) -> dict[str, str]:
    return dict(zip((f"hue{n}" for n in range(HUES)), colors, strict=True))


ON_DARK: Final = _hues(
    "#e69f00", "#56b4e9", "#2bbf92", "#dd94bd", "#f0e442", "#f98b5c", "#87aef0", "#b3b9c5",
)  # fmt: skip
ON_LIGHT: Final = _hues(
    "#7a4a00", "#00588f", "#005c43", "#85355f", "#555500", "#9a3412", "#3a3fa6", "#4a4f58",
)  # fmt: skip
_DARK: Final = ON_DARK | {
    "foreground": "#d8dee9", "secondary": "#9aa8b7", "primary": "#6cbce0", "accent": "#f0c674", "warning": "#e5b567",
    "error": "#f0858c", "success": "#98c379",
    "background": "#12161c", "surface": "#161b22", "panel": "#1f2630", "boost": "#28323f",
    "cursor": "#203a4d", "idle": "#1d2a36", "notice": "#332c1d",
}  # fmt: skip
_LIGHT: Final = ON_LIGHT | {
    "foreground": "#1d2329", "secondary": "#4c5761", "primary": "#14587d", "accent": "#794b00", "warning": "#794b00",
    "error": "#a11d16", "success": "#1f6325",
    "background": "#eceff2", "surface": "#f8f9fa", "panel": "#e4e8ec", "boost": "#d9e0e6",
    "cursor": "#cbe2ef", "idle": "#e1ebf1", "notice": "#f3e6c8",
}  # fmt: skip
_COLOR_BLIND: Final = ON_DARK | {
    "foreground": "#e6e9ee", "secondary": "#9aa5b1", "primary": "#56b4e9", "accent": "#f0e442", "warning": "#e69f00",
    "error": "#f98b5c", "success": "#56b4e9",
    "background": "#101318", "surface": "#15191f", "panel": "#1e242d", "boost": "#28313d",
    "cursor": "#1f394d", "idle": "#1d2935", "notice": "#332a12",
}  # fmt: skip
_OF_TEXTUAL: Final = (
    "foreground", "secondary", "primary", "accent", "warning", "error", "success", "background", "surface", "panel",
    "boost",
)  # fmt: skip
"""Colors that are arguments of a theme of Textual; the others are its variables."""


def _theme(name: str, colors: Mapping[str, str], *, dark: bool) -> Theme:
    arguments: dict[str, Any] = {key: colors[key] for key in _OF_TEXTUAL}
    variables = {key: color for key, color in colors.items() if key not in arguments}
    variables |= _quiet(colors)
    return Theme(name=name, dark=dark, variables=variables, **arguments)


def _quiet(colors: Mapping[str, str]) -> dict[str, str]:
    """Return the colors of scroll bars and of the chosen line of a menu."""
    bars = {f"scrollbar-background{state}": colors["surface"] for state in ("", "-hover", "-active")}
    return bars | {
        "scrollbar": colors["boost"], "scrollbar-hover": colors["cursor"], "scrollbar-active": colors["cursor"],
        "scrollbar-corner-color": colors["surface"],
        "block-cursor-background": colors["cursor"], "block-cursor-foreground": colors["foreground"],
        "block-cursor-blurred-background": colors["cursor"], "block-cursor-blurred-foreground": colors["foreground"],
    }  # fmt: skip


KDISSECT: Final = _theme("kdissect", _DARK, dark=True)
LIGHT: Final = _theme("kdissect-light", _LIGHT, dark=False)
COLOR_BLIND: Final = _theme("kdissect-color-blind", _COLOR_BLIND, dark=True)
OURS: Final = (KDISSECT, LIGHT, COLOR_BLIND)
THEME_WORDS: Final = (
    ("Dark", ""), ("Light", ""), ("Color-blind", "dark; no red beside green"),
)  # fmt: skip
"""Of each of ours: its name, and what it is in a few words."""
PALETTES: Final = {KDISSECT.name: _DARK, LIGHT.name: _LIGHT, COLOR_BLIND.name: _COLOR_BLIND}


def default_variables(theme: Theme) -> dict[str, str]:
    """Return our variables for a theme that is not ours."""
    colors = theme.to_color_system().generate()
    surface, primary, warning = (Color.parse(colors[name]) for name in ("surface", "primary", "warning"))
    made = {
        "cursor": surface.blend(primary, 0.3), "idle": surface.blend(primary, 0.15),
        "notice": surface.blend(warning, 0.2),
    }  # fmt: skip
    return (ON_DARK if theme.dark else ON_LIGHT) | {name: color.css for name, color in made.items()}


Inks = Mapping[str, Style]
"""Styles by the names of `TEXT_COLORS`, and those of Rich (``dim``). Text without a screen has none."""


def inks(variables: Mapping[str, str]) -> Inks:
    """Return a style for each text color of a theme."""
    return {name: Style(color=Color.parse(variables[name]).rich_color) for name in TEXT_COLORS if name in variables}


def bold(color: str) -> Style:
    """Return bold in a color of a theme, which may be one of the terminal's (`ansi_red`)."""
    return Style(color=Color.parse(color).rich_color, bold=True)


CSS: Final = (
    """
Screen { background: $background; }
ModalScreen { background: $background 60%; }
#title {
  height: 1; background: $panel; color: $foreground; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis;
}
LiveScreen #title { height: 2; }
#notice { height: auto; max-height: 3; background: $notice; color: $foreground; padding: 0 1; display: none; }
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
  max-height: 10; padding: 0 1; background: $panel; border: none; scrollbar-size: 1 1; text-wrap: nowrap;
  text-overflow: ellipsis;
}
#filter-offers.shown { display: block; }
#legend { height: auto; max-height: 2; background: $panel; padding: 0 1; display: none; }
#legend.shown { display: block; }
#lower { height: 11fr; }
#panes { height: 1fr; layout: vertical; }
#panes.columns { layout: horizontal; }
#panes.columns #legend { dock: bottom; }
#panes.columns #fields { border-left: solid $boost; }
#panes.columns #fields:focus { border-left: solid $primary; }
#fields, #bytes {
  border-top: solid $boost; border-title-color: $secondary; background: $surface; scrollbar-size: 1 1;
}
#fields { width: 1fr; overflow-x: hidden; }
#fields:focus { background-tint: $foreground 0%; }
#bytes { width: 76; border-left: solid $boost; overflow-x: hidden; }
Screen.narrow #bytes { width: 43; }
Screen.slim #bytes { width: 27; }
#list:focus { background: $surface; }
#fields:focus, #bytes:focus { border-top: solid $primary; border-title-color: $primary; border-title-style: bold; }
ToastRack { margin-bottom: 3; }
#inspector { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
.maximized { height: 1fr; width: 1fr; }
.hidden { display: none; }

ExchangeList > .list--head { background: $panel; color: $secondary; text-style: bold; }
ExchangeList > .list--cursor { background: $idle; }
ExchangeList:focus > .list--cursor { background: $cursor; }
ExchangeList > .list--repeated { color: $secondary; }
ExchangeList > .list--error { color: $error; }
ExchangeList > .list--warning { color: $warning; }
ExchangeList > .list--mark { color: $accent; text-style: bold; }
"""
    + "".join(f"ExchangeList > .list--hue{n} {{ color: $hue{n}; }}\n" for n in range(HUES))
    + """

FieldTree > .tree--cursor { background: $idle; }
FieldTree:focus > .tree--cursor { background: $cursor; }

BytesPane > .bytes--offset { color: $secondary; }
BytesPane > .bytes--plain { color: $secondary; }
BytesPane > .bytes--part0 { color: $primary; }
BytesPane > .bytes--part1 { color: $success; }
BytesPane > .bytes--shade0 { background: $accent; color: $background; text-style: bold; }
BytesPane > .bytes--shade1 { background: $cursor; color: $foreground; }
BytesPane > .bytes--shade2 { background: $boost; color: $foreground; }
BytesPane > .bytes--shade3 { background: $panel; color: $foreground; }
BytesPane > .bytes--cursor { text-style: underline bold; }

#pages { height: 1; background: $panel; color: $secondary; padding: 0 1; text-wrap: nowrap; }
#lines, #sequence { height: 1fr; background: $surface; scrollbar-size: 1 1; overflow-x: hidden; }
LineList > .lines--cursor, SequenceView > .sequence--cursor { background: $cursor; }
LineList > .lines--head { color: $secondary; text-style: bold; }
SequenceView > .sequence--head { background: $panel; color: $secondary; text-style: bold; }
LineList > .lines--name { color: $foreground; }
LineList > .lines--bar, SequenceView > .sequence--bar { color: $primary; }
LineList > .lines--bad, SequenceView > .sequence--bad { color: $error; }
LineList > .lines--warning, SequenceView > .sequence--warning { color: $warning; }
LineList > .lines--good, SequenceView > .sequence--good { color: $success; }
#graph { height: 1fr; background: $surface; }
IoGraphView > .graph--bar { color: $primary; }
IoGraphView > .graph--behind { color: $secondary; }
IoGraphView > .graph--bytes { color: $success; }
IoGraphView > .graph--bad { color: $error; }
IoGraphView > .graph--head { color: $secondary; text-style: bold; }
IoGraphView > .graph--brush { background: $cursor; }
IoGraphView > .graph--cursor { background: $boost; color: $accent; }
IoGraphView:nocolor > .graph--cursor, IoGraphView:nocolor > .graph--brush { text-style: reverse; }
LineList > .lines--dim, SequenceView > .sequence--dim { color: $secondary; }

Menu, ColumnMenu { align: center middle; }
#menu { width: auto; max-width: 90%; min-width: 30; height: auto; max-height: 80%; border: round $primary; }
#menu { background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
Menu Toast, ColumnMenu Toast { display: none; }

CommandPalette #--input { border-top: hkey $boost; }
CommandPalette CommandList { border-bottom: hkey $boost; text-wrap: nowrap; text-overflow: ellipsis; }

Prompt, WriteDialog, ExportDialog { align: center middle; }
#export { width: 80%; max-width: 90; min-width: 40; height: auto; border: round $primary; background: $panel; }
#export-file { height: 1; padding: 0 1; }
#export-label { width: auto; }
#export-path { background: $panel; width: 1fr; }
#export-path:focus, ChoiceLine:focus { background: $cursor; }
ChoiceLine:nocolor:focus { text-style: reverse; }
#export-hint { padding: 0 1; margin-top: 1; }
#prompt, #progress { width: 80%; max-width: 90; border: round $primary; background: $panel; }

FieldTree:nocolor > .tree--cursor { text-style: reverse; }
OptionList:nocolor > .option-list--option-highlighted { text-style: reverse; }

HelpScreen { align: center middle; }
#help {
  width: 74; max-width: 96%; height: auto; max-height: 92%; border: round $primary; background: $panel; padding: 0 2;
}
#help.wide { width: 150; }
"""
)
