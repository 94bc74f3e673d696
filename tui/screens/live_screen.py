"""The main screen of a live capture: rows are added, and the cursor follows while it is on the last one.

A second line of the title has statistics. The screen can be frozen while the capture goes on; the packets so far can be
saved at any time.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.widgets import Static

from dissector.capture import CaptureError
from dissector.capture.live import Recording, RecordingSettings
from dissector.capture_session import Capture, Progress
from dissector.core.files import private
from dissector.core.text import clean, counted, os_reason
from dissector.detection.decode_as import DecodeAs, of_ports
from tui.feature import CAPTURE, EscapeSteps
from tui.live_stats import ErrorTimes, LiveStats, live_stats
from tui.screens.dialog import Choice, Menu, Prompt
from tui.screens.main_screen import MainScreen
from tui.theme import bold

UPDATE_SECONDS: Final = 0.5
"""Seconds after which the statistics are updated."""
PATIENCE: Final = 3
"""Seconds without a packet after which a hint is shown."""


Begin = Callable[[RecordingSettings], tuple[Capture, Recording, RecordingSettings]]


class LiveScreen(MainScreen):
    """The main screen with live rows."""

    GROUP = CAPTURE
    RENUMBERS_ROWS = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "space", "freeze", "Freeze",
            tooltip="Freeze the screen while capturing continues; again: unfreeze", id="main.freeze",
        ),
        Binding("w", "save", "Save", tooltip="Save the packets so far to a file", id="main.save"),
        Binding("X", "clear", "Clear", show=False, id="main.clear",
                tooltip="Hide the rows so far; escape shows them again"),
        Binding("ctrl+e", "end", "End/start", id="main.end",
                tooltip="End the capture and keep its rows; again: start another one"),
    ]  # fmt: skip

    def __init__(self, capture: Capture, recording: Recording, wanted: RecordingSettings, begin: Begin) -> None:
        """`begin` starts another capture, and its caller closes it. It may take seconds."""
        super().__init__(capture)
        self._recording = recording
        self._wanted = wanted
        self._begin = begin
        self._saved = bool(wanted.path)
        """Whether all packets are in a file of the user's."""
        self._stats = LiveStats()
        self._errors = ErrorTimes()
        self._counting = False
        self._updated = 0.0
        """When the statistics were updated."""
        self._frozen = False
        """Whether the screen is frozen while the capture goes on."""
        self._last = 0
        """Rows that the user has seen arrive."""
        self._seen = 0
        """Packets that are drawn."""
        self._waits = False
        """Whether the selected exchange is pending."""

    @property
    def recording(self) -> Recording:
        """What records, and what it says of itself."""
        return self._recording

    def _loaded(self, progress: Progress, done: bool) -> None:
        """Take progress; often nothing is new."""
        self._progress, self.done = progress, done
        if (progress.packets != self._seen or done) and not self._frozen:
            self._show_new()
        self._rows_added(done=done)
        self.draw_title()
        self._draw_waiting()
        for words in (*self._recording.messages(), *([self._recording.failure] if done else [])):
            if words:
                self.notify(words, markup=False, timeout=10)

    def _show_new(self) -> None:
        """Show new rows in the list."""
        self._seen = self._progress.packets
        # in fields or bytes the exchange stays; back in the list, G follows again
        looks = self.focused in (self.field_tree, self.bytes_pane)
        self.exchange_list.show(len(self.capture), redraw=True, follow=not looks)
        self._refresh_pending()

    def draw_title(self) -> None:
        """Draw two lines: what is captured and how much; statistics."""
        title, alarm = (
            Text(),
            bold(self.app.theme_variables["error"]),
        )  # styles of its parts only
        title.append("○ ended" if self.done else "● live", "dim" if self.done else alarm)
        title.append(clean(f" {self._wanted.title}{self._proxy_address()}"), "bold")
        title.append(f" · {counted(len(self.capture), 'exchange')}")
        title.append(self._shown_words())
        lost = self._recording.dropped
        title.append(f" · {counted(lost, 'packet')} dropped", alarm if lost else "dim")
        width = self.app.size.width - 2
        state = f"{self._status_words().removeprefix(' · ')} · with {self._recording.engine}".removeprefix(" · ")
        room = width - title.cell_len - len(state)
        if room > 0:
            title.append(" " * room).append(state, "dim")
        self.query_one("#title", Static).update(title.append("\n").append_text(self._stats_line(width)))

    def said_of_connections(self) -> Sequence[DecodeAs]:
        ports = of_ports(self._wanted.ports)
        return [each for each in super().said_of_connections() if each not in ports]

    def _stats_line(self, width: int) -> Text:
        """Return the second line: new rows below, then as many statistics as fit."""
        line = Text()
        new = len(self.capture) - self._seen_to()
        if self._frozen:
            line.append("❚❚ frozen", "bold")
        if new:
            line.append(f"{' ' if line else ''}▼ {new:,} new", "bold")
        for words in [] if self.done else self._current_stats().words():
            if line.cell_len + 3 + len(words) > width:
                break
            line.append(" · " if line else "").append(words)
        return line

    def _seen_to(self) -> int:
        """Return how many rows there were when the user last saw the newest one: all, while the list follows."""
        if not self._frozen and (not len(self.view) or self.exchange_list.cursor == len(self.view) - 1):
            self._last = len(self.capture)
        return self._last

    def _current_stats(self) -> LiveStats:
        """Return the statistics, updated slowly enough to be read."""
        now = time.monotonic()
        if now - self._updated >= UPDATE_SECONDS:
            self._updated, self._stats = now, live_stats(self.capture, time.time_ns(), self._errors)
            if not self._counting:
                self._counting = True
                self._count_errors()
        return self._stats

    @work(thread=True, group="errors")
    def _count_errors(self) -> None:
        try:
            self._errors.look(self.capture)
        finally:
            self._counting = False

    def action_freeze(self) -> None:
        """Freeze the screen, or continue."""
        self._frozen = not self._frozen
        if not self._frozen:
            self._show_new()
            self.exchange_list.cursor = max(0, len(self.view) - 1)
        self.draw_title()

    def action_clear(self) -> None:
        """Begin the list behind the rows that it has: more may have come. Rows keep their numbers."""
        self._begin_list(self.view.count)

    def escape_order(self) -> EscapeSteps:
        return (*super().escape_order(), self.restore_cleared)

    def restore_cleared(self) -> bool:
        """Show the rows again that were cleared."""
        cleared = self.view.first > 0
        if cleared:
            self._begin_list(0)
        return cleared

    def _begin_list(self, first: int) -> None:
        self.view.begin(first)
        self.exchange_list.update_rows()
        self.draw_title()

    def action_end(self) -> None:
        """End the capture: its rows stay. Again: start another one, in place of this."""
        if not self.done:
            self._recording.stop()
        elif self._saved or not len(self.capture):
            self._begin_another()
        else:
            choices = [Choice("Start", "without saving these packets"), Choice("Save", "these packets, then start")]
            self.app.push_screen(Menu("The packets are not saved", choices), self._begin_or_save)

    def _begin_or_save(self, chosen: int | None) -> None:
        if chosen is not None:
            (self._begin_another, self.action_save)[chosen]()

    @work(thread=True, group="begin", exclusive=True)
    def _begin_another(self) -> None:
        try:
            capture, recording, wanted = self._begin(self._wanted.for_next_capture())
        except CaptureError as error:
            self.app.call_from_thread(self.notify, clean(str(error)), severity="error", markup=False, timeout=10)
            return
        screen = type(self)(capture, recording, wanted, self._begin)
        old, new = self.appearance, screen.appearance
        new.columns, new.color_by, new.time, new.saved = old.columns, old.color_by, old.time, old.saved
        new.layout = old.layout
        self.app.call_from_thread(self.app.switch_screen, screen)

    def is_read(self) -> bool:
        if self.done:
            return super().is_read()
        self.notify("still capturing: end the capture first (ctrl+e)", timeout=4)
        return False

    def action_save(self) -> None:
        """Ask for a file to copy the packets so far to."""
        if self._recording.is_ring:
            self.notify("the ring buffer files already hold all packets", timeout=5)
            return
        name = time.strftime("kdissect-%Y%m%d-%H%M%S.pcapng")

        def save(given: str | None) -> None:
            if given and given.strip():
                self._save(given.strip())

        self.app.push_screen(Prompt("Save the packets so far to", name), save)

    @work(thread=True, group="save")
    def _save(self, name: str) -> None:
        whole = self._recording.ended
        try:
            with Path(self.capture.names[0]).open("rb") as packets, open(name, "xb", opener=private) as file:
                shutil.copyfileobj(packets, file)
                words = f"saved {counted(file.tell(), 'byte')} to {name}"
            self._saved = self._saved or whole
        except (OSError, ValueError) as error:
            words = f"{name}: {os_reason(error)}"
        self.app.call_from_thread(self.notify, clean(words), markup=False, timeout=10)

    def _refresh_pending(self) -> None:
        """Show the response of the selected exchange once it came."""
        if self._waits and self._is_complete(self.number):
            self._choose(self.number)

    def _choose(self, number: int) -> None:
        super()._choose(number)
        self._waits = len(self.capture) > 0 and not self._is_complete(number)

    def _is_complete(self, number: int) -> bool:
        return bool(self.capture.index.is_complete(np.array([number]))[0])

    def _draw_waiting(self) -> None:
        """Draw what is captured, as long as there is no row."""
        empty = self.query_one("#empty", Static)
        waiting = not len(self.capture)
        self.query_one("#panes").set_class(waiting, "hidden")
        if waiting:
            lines = (clean(line) for line in self._waiting_words().splitlines())
            empty.update(Text("\n".join(lines), justify="center"))
        elif empty.has_class("shown"):
            self.exchange_list.focus()
        empty.set_class(waiting, "shown")

    def _proxy_address(self) -> str:
        """Of a proxy, the address that clients begin with."""
        return "".join(f" on {address}" for address, _ in self._recording.listening[:1])

    def _listening_words(self) -> list[str]:
        """Of a proxy, where clients find it."""
        found = [f"listening on {address} for {broker}" for address, broker in self._recording.listening]
        return [*found, "point bootstrap.servers there"] if found else []

    def _waiting_words(self) -> str:
        where = "\n".join([self._wanted.words, *self._listening_words()])
        if self.capture.packets:
            seen = counted(self.capture.packets, "packet")
            connections = counted(len(self.capture.connections), "TCP connection")
            where = f"{where}\n\n{seen}, {connections}, no Kafka so far"
        elif self._recording.seconds >= PATIENCE and not self.done:
            where = self._wanted.no_traffic_message(self._recording.seconds)
        return f"{where}\n\n{self._wanted.widening_hint()}"
