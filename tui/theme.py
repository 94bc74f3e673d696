"""Our colours, and how the panes use the theme's: any other theme of Textual's works too."""

from typing import Final

from textual.theme import Theme

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
)

CSS: Final = """
Screen { background: $background; }
#title { height: 1; background: $panel; color: $foreground; padding: 0 1; }
#notice { height: auto; max-height: 3; background: $warning 25%; color: $foreground; padding: 0 1; display: none; }
#notice.shown { display: block; }
#empty { height: 1fr; content-align: center middle; text-align: center; color: $foreground; display: none; }
#empty.shown { display: block; }
#list { height: 9fr; background: $surface; scrollbar-size: 1 1; overflow-x: hidden; }
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
.maximised { height: 1fr; width: 1fr; }
.hidden { display: none; }

ExchangeList > .list--head { background: $panel; color: $secondary; text-style: bold; }
ExchangeList > .list--odd { background: $surface; }
ExchangeList > .list--cursor { background: $primary 20%; }
ExchangeList:focus > .list--cursor { background: $primary 40%; }
ExchangeList > .list--error { color: $error; }
ExchangeList > .list--warning { color: $warning; }

FieldTree > .tree--guides { color: $boost; }
FieldTree > .tree--cursor { background: $boost; }
FieldTree:focus > .tree--cursor { background: $primary 35%; }

BytesPane > .bytes--offset { color: $secondary; }
BytesPane > .bytes--plain { color: $foreground 55%; }
BytesPane > .bytes--shade0 { background: $accent; color: $background; text-style: bold; }
BytesPane > .bytes--shade1 { background: $primary 40%; color: $foreground; }
BytesPane > .bytes--shade2 { background: $primary 24%; color: $foreground; }
BytesPane > .bytes--shade3 { background: $primary 12%; color: $foreground 85%; }
BytesPane > .bytes--cursor { text-style: underline bold; }

HelpScreen { align: center middle; background: $background 60%; }
#help {
  width: 74; max-width: 96%; height: auto; max-height: 92%; border: round $primary; background: $panel; padding: 1 2;
}
"""
