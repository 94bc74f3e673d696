"""Textual's application as we need it: notifications, names of keys, dimmed text, help and screenshots, and events on
which Textual would fail. It knows no captures.

A notification's toast always has some time left: Textual shows one that has not expired, and then asks how long it may
stay. If it expires in between, as on a busy machine, its timer has a negative interval: Textual 8.2 counts with it for
ever, and the screen is dead.

Screenshots have a text element for each word. Rich writes one for each run of a style, with the spaces in it:
converters collapse those at the ends, and take widths from a font of their own, so what follows would be out of its
column.
"""

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Final

from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.style import Style
from textual import events
from textual._xterm_parser import XTermParser
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.errors import NoWidget
from textual.filter import ANSIToTruecolor, LineFilter, dim_color
from textual.message import Message
from textual.notifications import Notification, Notify, SeverityLevel

from dissector.core.expansion import RUN
from dissector.core.text import clean
from tui.screens.help_screen import HelpScreen, keys_of
from tui.theme import CSS, DIM, default_variables
from tui.typeahead import TypeAhead


class TolerantDriver(LinuxDriver):
    """Takes keys that are not UTF-8, and leaves out those with numbers that no character has. Either ends Textual's
    input thread, and the program with it: one byte of a terminal that is set to Latin-1 is enough."""

    def run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError as error:
                for event in typed_events(error.object):
                    self.process_message(event)
            except (OverflowError, ValueError):  # such a number: what came with it is lost
                continue


def typed_events(data: bytes) -> Iterator[Message]:
    """Yield what was typed, up to a key with a number that no character has."""
    with suppress(OverflowError, ValueError):
        yield from XTermParser().feed(typed_text(data))


def typed_text(data: bytes) -> str:
    """Return what was typed: UTF-8, in which other bytes are letters of Latin-1; what are none there are left out."""
    found = []
    for character in data.decode("utf-8", "surrogateescape"):
        byte = ord(character) - 0xDC00
        if not 0x80 <= byte <= 0xFF:
            found.append(character)
        elif byte >= 0xA0:
            found.append(chr(byte))
    return "".join(found)


SHORTEST: Final = 0.1
"""Seconds that a toast is shown at least."""


@dataclass
class TimedNotification(Notification):
    """A notification that expires as any other."""

    @property
    def time_left(self) -> float:
        """Seconds for which its toast is to be shown."""
        return max(super().time_left, SHORTEST)

    @property
    def has_expired(self) -> bool:
        """Whether no toast is to be shown for it."""
        return super().time_left <= 0


_NOT_DIM = Style(dim=False)


class Dimming(ANSIToTruecolor):
    """Textual's filter of a terminal's colors, which dims too, with our share of the color. One filter, as each costs
    a pass over all that is drawn. The colors of a terminal itself (`ansi_red`) have no known mixture."""

    @lru_cache(1024)  # noqa: B019  # as Textual's, which lives as long as the application
    def truecolor_style(self, style: Style, background: RichColor) -> Style:
        return super().truecolor_style(_mixed(style, background) if style.dim else style, background)


def with_dimming(filters: Sequence[LineFilter]) -> list[LineFilter]:
    """Return filters of an application with ours in place of Textual's."""
    return [_dimming(each) if type(each) is ANSIToTruecolor else each for each in filters]


@lru_cache(4)
def _dimming(filter: ANSIToTruecolor) -> Dimming:
    return Dimming(filter._terminal_theme, enabled=filter.enabled)


def _mixed(style: Style, background: RichColor) -> Style:
    behind = background if style.bgcolor is None or style.bgcolor.is_default else style.bgcolor
    if style.color is None or style.color.triplet is None or behind.triplet is None:
        return style
    return style + Style.from_color(dim_color(behind, style.color, DIM)) + _NOT_DIM


class TerminalApp(TypeAhead):
    """An application without a first screen."""

    CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "ctrl+p",
            "command_palette",
            "Commands",
            show=False,
            priority=True,
            tooltip="Find any command by its name",
            id="app.palette",
        ),
        Binding(
            "ctrl+s",
            "picture",
            "Screenshot",
            show=False,
            priority=True,
            tooltip="Save a screenshot (SVG)",
            id="app.picture",
        ),
    ]

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        return TolerantDriver if found is LinuxDriver else found

    def notify(
        self, message: str, *, title: str = "", severity: SeverityLevel = "information", timeout: float | None = None,
        markup: bool = True,
    ) -> None:  # fmt: skip
        """Show a notification, for `timeout` seconds."""
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        self.post_message(Notify(TimedNotification(message, title, severity, seconds, markup)))

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our variables, for themes that are not ours."""
        return default_variables(self.current_theme)

    def get_key_display(self, binding: Binding) -> str:
        """Keys as people write them."""
        return super().get_key_display(binding).replace("^", "ctrl+").replace("⏎", "enter").replace("\u23ce", "enter")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, with ours for dimmed text: it keeps enough of its color to be read."""
        return with_dimming(super().get_line_filters())

    async def on_event(self, event: events.Event) -> None:
        """Drop clicks on what was removed: it is still drawn until the next frame, and Textual fails on its place. What
        is dragged gets them. Drop keys and clicks that come when the last screen is gone: Textual fails on these, too.
        """
        if isinstance(event, events.InputEvent) and not self.screen_stack:
            return
        if isinstance(event, events.Key | events.MouseDown):
            RUN.begin()  # what a person asks for next has all the room
        comes = isinstance(event, events.MouseEvent) and not event.is_forwarded and self.mouse_captured is None
        if isinstance(event, events.MouseEvent) and comes and self._is_gone_at(event.x, event.y):
            return
        await super().on_event(event)

    def _is_gone_at(self, x: int, y: int) -> bool:
        """Return whether a widget is drawn there that was removed."""
        try:
            return not self.get_widget_at(x, y)[0].is_attached
        except NoWidget:
            return False

    def action_help(self) -> None:
        self.push_screen(HelpScreen(keys_of(self.screen)))

    def export_screenshot(self, *, title: str | None = None, simplify: bool = False) -> str:
        """Return the screen as SVG that converters draw as it is."""
        return one_text_a_word(super().export_screenshot(title=title, simplify=simplify))

    def action_picture(self) -> None:
        """Save the screen as SVG in the current folder."""
        try:
            path = Path(self.save_screenshot())
        except OSError as error:
            words = clean(f"screenshot not saved: {error.strerror or error}")
            self.notify(words, severity="error", markup=False)
        else:
            self.notify(f"saved {path.name}", markup=False)


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
