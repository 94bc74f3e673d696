"""A capture that is being read: its rows come into the list; the title has what is known of it so far, a line what is
wrong with its files, and a capture without Kafka has words in place of the panes.

Invariant: reading never blocks the screen: it runs in a thread.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
from rich.text import Text
from textual import work
from textual.widgets import Static
from textual.worker import get_current_worker

from dissector.capture import CaptureError
from dissector.capture_session import Capture, Progress
from dissector.core.text import clean, counted
from dissector.detection.decode_as import DecodeAs
from dissector.detection.other_protocols import OtherProtocol
from tui.appearance import Appearance
from tui.feature import FeatureScreen
from tui.labels import progress_words
from tui.messages import CaptureFailed
from tui.row_view import RowView
from tui.threads import call_on_ui, load
from tui.widgets.exchange_list import ExchangeList

LEAST_NAME: Final = 8
"""Cells of a capture's name in the title, at least."""


class CaptureScreen(FeatureScreen):
    """Title and list of one capture. Who composes it has the list in `#panes`, `#title`, `#notice` and `#empty`."""

    RENUMBERS_ROWS: ClassVar[bool] = True
    """Whether rows get their final order when all is read."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self.capture = capture
        capture.host_names.spares_main_thread = True
        self.view = RowView()
        self.appearance = Appearance()
        self._progress = Progress(0, 0, 0, 0)
        self.done = False
        self._notice = ""

    @property
    def exchange_list(self) -> ExchangeList:
        return self.query_one(ExchangeList)

    @property
    def number(self) -> int:
        """The row under the list's cursor, from 0."""
        return self.exchange_list.number

    def is_read(self) -> bool:
        """Return whether the capture is read and has rows; if not, notify the user who is too early."""
        if not self.done:
            self.notify("still reading the capture: this needs the whole capture", timeout=3)
        elif not len(self.capture):
            self.notify("there are no exchanges", timeout=2)
        return self.done and len(self.capture) > 0

    @property
    def waits_for_end(self) -> bool:
        """Whether rows get other numbers when the capture is read, which it is not yet."""
        return self.RENUMBERS_ROWS and not self.done

    def has_rows(self) -> bool:
        """Return whether there are rows whose numbers stay: live they do, else only when all is read."""
        if self.done or self.RENUMBERS_ROWS:
            return self.is_read()
        if not len(self.capture):
            self.notify("no exchanges yet", timeout=2)
        return len(self.capture) > 0

    def begin_reading(self) -> None:
        """Read the capture, unless that is done."""
        self._load()

    @work(thread=True, exclusive=True, group="load")
    def _load(self) -> None:
        worker = get_current_worker()

        def report(progress: Progress, done: bool) -> None:
            call_on_ui(self, self._loaded, progress, done)

        try:
            load(self.capture, report, lambda: worker.is_cancelled, sort=self.RENUMBERS_ROWS)
        except CaptureError as error:  # a pipe that turns out to be no capture: reported when the screen is closed
            if not worker.is_cancelled:
                self.app.call_from_thread(self.post_message, CaptureFailed(error))

    def _loaded(self, progress: Progress, done: bool) -> None:
        """Take more rows, and at the end the final order."""
        self._progress, self.done = progress, done
        if done:
            self._rows_renumbered()
        self.exchange_list.show(len(self.capture), redraw=done)
        self._rows_added(done=done)
        self.draw_title()
        if not done:
            return
        if len(self.capture):
            self._choose(self.number)
        else:
            self._draw_empty()
        self._draw_notice()

    def _draw_notice(self) -> None:
        """Show what is wrong with the files, also if it goes wrong later."""
        words = "\n".join("! " + clean(problem.message) for problem in self.capture.problems)
        if words != self._notice:
            self._notice = words
            notice = self.query_one("#notice", Static)
            notice.update(Text(words))
            notice.add_class("shown")

    def _rows_added(self, *, done: bool) -> None:
        for each in self.features:
            each.rows_added(done=done)

    def _rows_renumbered(self) -> None:
        self.view.renumber(self.capture.rows.after_sort)
        self.exchange_list.follow(int(self.capture.rows.after_sort(np.array([self.exchange_list.selected]))[0]))
        for each in self.features:
            each.rows_renumbered()

    def draw_title(self) -> None:
        title = Text()
        title.append(
            f" · {counted(len(self.capture), 'exchange')} · {counted(len(self.capture.connections), 'connection')}", ""
        )
        title.append(self._shown_words())
        state, working = progress_words(self._progress, done=self.done), self._status_words()
        names = Text(", ".join(_title_name(name) for name in self.capture.names), "bold")
        room = self.app.size.width - 2 - title.cell_len - len(state) - 1
        if room - len(working) >= min(LEAST_NAME, names.cell_len):
            state, room = state + working, room - len(working)
        names.truncate(max(LEAST_NAME, room), overflow="ellipsis")
        gap = " " * max(1, room + 1 - names.cell_len)
        self.query_one("#title", Static).update(names.append_text(title).append(gap).append(state, "dim"))

    def _shown_words(self) -> str:
        """Return what features say of the rows, and how many are shown, if not all."""
        shown = f" · {len(self.view):,} shown" if self.view.is_filtered else ""
        return "".join(each.title_words() for each in self.features) + shown

    def _status_words(self) -> str:
        return "".join(each.status_words() for each in self.features)

    def said_of_connections(self) -> Sequence[DecodeAs]:
        """Return what the user said of connections, as far as the title does not say it otherwise."""
        return self.capture.decode_as

    def _draw_empty(self) -> None:
        seen = f"{counted(self.capture.packets, 'packet')}, {counted(len(self.capture.connections), 'TCP connection')}"
        protocols = ", ".join(f"{count:,} {name}" for name, count in self.capture.connections.protocols.items())
        is_tls = OtherProtocol.TLS.label in self.capture.connections.protocols
        parts = [
            "No Kafka in this capture",
            f"{seen}{': ' if protocols else ''}{protocols}.",
            "Kafka over TLS needs its keys: --keylog FILE; see kdissect explain tls" if is_tls else "",
            "Start capturing before the client connects:\n\ntcpdump -i any -w out.pcap tcp port 9092",
            "Where packets can't be captured, record with kdissect proxy BROKER:9092",
            "Or press U to declare which connections are Kafka" if len(self.capture.connections) else "",
            "ctrl+p opens another capture",
        ]
        empty = self.query_one("#empty", Static)
        empty.update(Text("\n\n".join(filter(None, parts)), justify="center"))
        empty.add_class("shown")
        self.query_one("#panes").add_class("hidden")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A capture without rows has no keys for them."""
        if self.done and not len(self.capture) and action in self._actions_of_rows:
            return False
        return super().check_action(action, parameters)

    @cached_property
    def _actions_of_rows(self) -> frozenset[str]:
        keys = (key for each in self.features if each.NEEDS_ROWS for key in each.BINDINGS)
        return frozenset(key.action.partition("(")[0] for key in keys)

    def _choose(self, number: int) -> None:
        """A row is selected. For the panes below the list."""


def _title_name(name: str) -> str:
    """Return how a capture is called in the title."""
    return "standard input" if name == "-" else clean(name.rpartition("/")[2])
