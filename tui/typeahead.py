"""Type-ahead: keys that come faster than the screen responds go where they would go if typed slowly.

Textual gives a key to the widget that has the focus when it arrives. What the previous key opens has no focus yet: of
`/topic` typed at once the letters were commands, and enter pressed twice in a menu also closed what was below it.

Invariant: a key, or pasted text, is dispatched when everything that the previous one caused is done, or after `LONGEST`
seconds; none is lost, and their order stays. Repeats of a key that leaves the focus where it is are dispatched
together: their effect is drawn once.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Final

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.widget import Widget

LONGEST: Final = 1.0
"""Seconds that keys wait for a previous one: a longer hang must not block ctrl+q."""
LOOK: Final = 0.05
"""Seconds after which a widget that did not respond is checked: it may be gone."""
ROUNDS: Final = 2
"""Times that all widgets are waited for. A key may open a screen, and that one may move the focus."""
Typed = events.Key | events.Paste


class TypeAhead(App[None]):
    """An application that dispatches one key at a time."""

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._typed: deque[Typed] = deque()
        """Input that is not dispatched yet."""
        self._dealing: asyncio.Task[None] | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether all input is handled."""
        return self._dealing is None

    async def on_event(self, event: events.Event) -> None:
        if event.is_forwarded or not isinstance(event, Typed):
            await super().on_event(event)
        elif self._dealing is not None:
            self._typed.append(event)
        else:
            await self._deal_out([event])

    async def _deal_out(self, typed: list[Typed]) -> None:
        """Dispatch input to the widget with the focus; then what comes next."""
        focus = self.focused or self.screen
        for event in typed:
            await super().on_event(event)
        self._dealing = asyncio.create_task(self._go_on(focus, _key(typed[-1])))

    async def _go_on(self, focus: Widget, key: str) -> None:
        """Wait until it is handled: it bubbles from the focus up to the application, which runs its action."""
        until = time.monotonic() + LONGEST
        for each in focus.ancestors_with_self:
            await _rest([each], until)
        for _ in range(ROUNDS):
            await _rest(self.screen.walk_children(with_self=True) if self.screen_stack else (), until)
            await _rest([self], until)
        if self._typed and self.screen_stack:  # else the application ended
            self.call_later(self._deal_out, self._next(key if focus is (self.focused or self.screen) else ""))
        else:
            self._dealing = None

    def _next(self, held: str) -> list[Typed]:
        """Return the next input, with all repeats if it is the key that is held."""
        typed = [self._typed.popleft()]
        while held and self._typed and _key(typed[0]) == held == _key(self._typed[0]):
            typed.append(self._typed.popleft())
        return typed


def _key(typed: Typed) -> str:
    return typed.key if isinstance(typed, events.Key) else ""


async def _rest(pumps: Iterable[MessagePump], until: float) -> None:
    """Wait until each has handled all its messages so far, or is gone."""
    waited = {}
    for pump in pumps:
        done = asyncio.get_running_loop().create_future()
        if pump.call_later(_answer, done):
            waited[done] = pump
    while waited and time.monotonic() < until:
        await asyncio.wait(waited, timeout=LOOK)
        waited = {done: pump for done, pump in waited.items() if not done.done() and pump.is_running}


def _answer(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
