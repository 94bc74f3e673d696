"""Keys that come faster than the screen answers: each goes where it had gone if it had been typed slowly.

Textual gives a key to what has the focus when it arrives. What the key before it opens has no focus yet then: of
`/topic` typed in one breath the letters were commands, and enter pressed twice in a menu closed what is below it too.

Invariant: a key, or what is pasted, is dealt out when what the one before it has set in motion is at rest, or has
taken `LONGEST`; none is lost, and their order stays. A key that is held down and leaves the focus where it is waits
once: what it does is drawn together.
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
"""Seconds that keys wait for one before them: what hangs longer must not keep ctrl+q away."""
LOOK: Final = 0.05
"""Seconds after which a part of the screen is looked at that has not answered: it may be gone."""
ROUNDS: Final = 2
"""Times that all parts of the screen are asked. A key may open a screen, and that one may give the focus away."""
Typed = events.Key | events.Paste


class TypeAhead(App[None]):
    """An application that is never ahead of itself."""

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._typed: deque[Typed] = deque()
        """What was not dealt out yet."""
        self._dealing: asyncio.Task[None] | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether all that was typed is dealt with."""
        return self._dealing is None

    async def on_event(self, event: events.Event) -> None:
        if event.is_forwarded or not isinstance(event, Typed):
            await super().on_event(event)
        elif self._dealing is not None:
            self._typed.append(event)
        else:
            await self._deal_out([event])

    async def _deal_out(self, typed: list[Typed]) -> None:
        """Give it to who has the focus; then what comes next."""
        focus = self.focused or self.screen
        for event in typed:
            await super().on_event(event)
        self._dealing = asyncio.create_task(self._go_on(focus, _key(typed[-1])))

    async def _go_on(self, focus: Widget, key: str) -> None:
        """Wait until it is dealt with: it goes up from the focus to the application, which does what it stands for."""
        until = time.monotonic() + LONGEST
        for each in focus.ancestors_with_self:
            await _rest([each], until)
        for _ in range(ROUNDS):
            await _rest(self.screen.walk_children(with_self=True) if self.screen_stack else (), until)
            await _rest([self], until)
        if self._typed and self.screen_stack:  # else it is over
            self.call_later(self._deal_out, self._next(key if focus is (self.focused or self.screen) else ""))
        else:
            self._dealing = None

    def _next(self, held: str) -> list[Typed]:
        """The next one, or all of it that comes at a stretch if that is the key that is held."""
        typed = [self._typed.popleft()]
        while held and self._typed and _key(typed[0]) == held == _key(self._typed[0]):
            typed.append(self._typed.popleft())
        return typed


def _key(typed: Typed) -> str:
    return typed.key if isinstance(typed, events.Key) else ""


async def _rest(pumps: Iterable[MessagePump], until: float) -> None:
    """Wait until each has dealt with all that it was told so far, or is gone."""
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
