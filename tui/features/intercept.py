"""Messages that wait in the proxy until the user decides: what is held, the menu of what waits, the editor."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, Final

from textual.app import SuspendNotSupported
from textual.binding import Binding

from dissector.capture.held_messages import HeldMessage, Interception
from dissector.capture.live.commands import RefusedError
from dissector.core.text import byte_size, clean, counted, os_reason
from dissector.proxy_server.controls import ProxyControls
from dissector.proxy_server.faults import FaultError
from dissector.proxy_server.intercept import EditError, editable_text, edited_frame, message_text
from dissector.proxy_server.intercept.editing import MOST_EDITED
from tui.command_line import CommandError, LineCommand
from tui.feature import CAPTURE, ScreenFeature, work
from tui.features.filter import FilterFeature
from tui.proxy_rows import go_to_row, rows_of
from tui.screens.dialog import Prompt
from tui.screens.held_screen import HeldScreen
from tui.screens.live_screen import LiveScreen
from tui.threads import call_on_ui

EDITORS: Final = ("VISUAL", "EDITOR")
"""Variables that name the editor, the first that is set."""
USUAL_EDITOR: Final = "vi"


class InterceptFeature(ScreenFeature[LiveScreen]):
    """H shows what waits; `:intercept FILTER` says what is to wait."""

    GROUP = CAPTURE
    NEEDS_ROWS = False
    BINDINGS: ClassVar[list[Binding]] = [
        Binding("H", "held", "Held", id="main.held",
                tooltip="Held messages: view, edit, send on or drop them; i chooses which to hold"),
    ]  # fmt: skip

    def __init__(self, screen: LiveScreen) -> None:
        super().__init__(screen)
        self._told: Interception = Interception()
        self._rows: dict[tuple[str, int], int] = {}

    @property
    def _controls(self) -> ProxyControls:
        return ProxyControls(self.screen.recording)

    def commands(self) -> Iterator[LineCommand]:
        yield LineCommand(
            "intercept", "hold matching messages; without a filter: stop holding", self._intercept_command,
            "[requests|responses] FILTER", self.screen.feature(FilterFeature)._completions,
        )  # fmt: skip
        yield LineCommand(
            "hold-limit", "how long a message is held before it is sent on", self._limit_command, "SECONDS",
            needs_argument=True,
        )  # fmt: skip

    def title_words(self) -> str:
        state = self.state()
        held = f" · ‖ {counted(len(state.held), 'message')} held: H" if state.held else ""
        return held or ("" if state.text is None else " · intercepting")

    def rows_added(self, *, done: bool) -> None:
        """Mark the rows whose messages wait."""
        state = self.state()
        asked = {(each.client, each.correlation_id) for each in state.held}
        if asked == self._rows.keys():
            return
        self._rows = {each: row for each, row in self._rows.items() if each in asked}
        self._rows |= rows_of(self.screen.capture, asked - self._rows.keys())
        held = {*self._rows.values()}
        if held != self.screen.appearance.held:
            self.screen.appearance.held = held
            self.screen.exchange_list.update_rows(scrolled=False)

    # What is held.

    def state(self) -> Interception:
        return self.screen.recording.interception

    def action_held(self) -> None:
        def go(held: HeldMessage | None) -> None:
            if held is not None:
                self._find(held)

        self.app.push_screen(HeldScreen(self), go)

    def ask(self, text: str | None = None, error: str = "") -> None:
        """Ask what is to be held; again with what was wrong."""
        title = error or "Hold messages that match: [requests|responses] FILTER; empty: stop holding and send all on"

        def take(typed: str | None) -> None:
            if typed is not None:
                self._intercept(typed.strip())

        self.app.push_screen(Prompt(title, self.state().text or "" if text is None else text), take)

    def _intercept_command(self, text: str) -> None:
        self._intercept(text)

    @work(group="control", thread=True)
    def _intercept(self, text: str) -> None:
        def set_rule() -> None:
            self._controls.intercept(text or None)
            if not text:
                self._controls.send_all()

        try:
            self._try(set_rule)
        except FaultError as error:
            call_on_ui(self.app.screen, self.ask, text, str(error))

    def _limit_command(self, text: str) -> None:
        try:
            limit = float(text.removesuffix("s"))
        except ValueError:
            raise CommandError(clean(f"{text!r} is not a number of seconds")) from None
        self._run(lambda: self._controls.limit(limit))

    def _try(self, act: Callable[[], object]) -> None:
        """Do what may be refused, in a thread."""
        try:
            act()
        except (RefusedError, EditError) as error:
            call_on_ui(self.app.screen, self.notify, clean(str(error)), severity="error", timeout=8)

    @work(group="control", thread=True)
    def _run(self, act: Callable[[], object]) -> None:
        self._try(act)

    # What is done with one.

    @work(group="control", thread=True)
    def show(self, held: HeldMessage, then: Callable[[int, str], object]) -> None:
        def look() -> None:
            if held.size > MOST_EDITED:
                text = f"{byte_size(held.size)}: too large to show here"
            else:
                frame = self._controls.frame(held.number)
                text = message_text(held, frame, show_secrets=self.screen.capture.shows_secrets)
            call_on_ui(self.app.screen, then, held.number, text)

        self._try(look)

    def send_on(self, held: HeldMessage) -> None:
        self._run(lambda: self._controls.send_on(held.number))

    def send_all(self) -> None:
        self._run(self._controls.send_all)

    def drop(self, held: HeldMessage) -> None:
        self._run(lambda: self._controls.drop(held.number))

    def close(self, held: HeldMessage) -> None:
        self._run(lambda: self._controls.close(held.number))

    def wait(self, held: HeldMessage) -> None:
        self._run(lambda: self._controls.wait(held.number))

    @work(group="control", thread=True)
    def edit(self, held: HeldMessage) -> None:
        """Fetch the message, let the user edit it, and send on what came of it; its limit begins again."""

        def begin() -> None:
            frame = self._controls.frame(held.number)
            text = editable_text(held, frame, show_secrets=self.screen.capture.shows_secrets)
            self._controls.wait(held.number)
            call_on_ui(self.app.screen, self._edit_text, held, frame, text)

        self._try(begin)

    def _edit_text(self, held: HeldMessage, frame: bytes, text: str) -> None:
        """Let the user edit a text in the editor, which has the terminal meanwhile."""
        try:
            with self.app.suspend():
                found = in_editor(text)
        except SuspendNotSupported:
            self.notify("can't open an editor on this terminal", severity="error")
            return
        except (OSError, ValueError) as error:
            self.notify(clean(f"the editor: {os_reason(error) if isinstance(error, OSError) else error}"),
                        severity="error", timeout=8)  # fmt: skip
            return
        self._send_edited(held, frame, found)

    @work(group="control", thread=True)
    def _send_edited(self, held: HeldMessage, frame: bytes, text: str) -> None:
        def send() -> None:
            try:
                made, paths = edited_frame(held, frame, text)
            except EditError as error:
                raise EditError(f"{error}; the message is still held") from None
            if not paths:
                raise EditError("nothing was edited; the message is still held")
            try:
                self._controls.edit(held.number, made, paths)
            except RefusedError as error:
                raise EditError(f"not sent: {error}; :hold-limit gives more time") from None

        self._try(send)

    @work(group="control", thread=True)
    def _find(self, held: HeldMessage) -> None:
        go_to_row(self.screen, (held.client, held.correlation_id), "its row does not exist yet")


def in_editor(text: str) -> str:
    """Return a text as the user's editor leaves it. Only the user may read its file, which is removed afterwards.
    Raises `OSError`, and `ValueError` for an editor that fails or leaves no text."""
    named = next((os.environ[name] for name in EDITORS if os.environ.get(name)), USUAL_EDITOR)
    with tempfile.TemporaryDirectory(prefix="kdissect-") as folder:  # mode 0700: an editor's own copies are in it, too
        path = Path(folder) / "message.json"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        done = subprocess.run([*shlex.split(named), str(path)], check=False)
        if done.returncode:
            raise ValueError(f"{named} ended with exit code {done.returncode}")
        return path.read_text("utf-8")
