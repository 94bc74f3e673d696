"""Drives any screen: presses keys, waits, reads what is drawn."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from tests.tui import textual_for_tests

textual_for_tests.install()
SIZES: Final = ((60, 20), (80, 24), (120, 40), (200, 60))
"""Of terminals, smallest first: tests open a screen at the first and give the terminal the others."""
PATIENCE: Final = 60.0
"""Seconds after which a condition is taken for one that never comes."""


class Driven:
    """An application under test."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Wait until no worker runs and all is drawn; what a worker did may start another one."""
        workers = self.pilot.app.workers
        await self.pilot.pause()
        while running := [worker for worker in workers if not worker.is_finished]:
            with suppress(WorkerCancelled):
                await workers.wait_for_complete(running)
            await self.pilot.pause()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition, not for everything that runs; the bound is for a hang."""
        loop = asyncio.get_running_loop()
        end, pause = loop.time() + PATIENCE, 0.005
        while not true():
            assert loop.time() < end, self.lines()
            await self.pilot.pause(pause)
            pause = min(0.05, 1.5 * pause)

    async def resize(self, size: tuple[int, int]) -> None:
        """Give the terminal another size."""
        await self.pilot.resize_terminal(*size)
        await self.settle()

    def notifications(self) -> list[str]:
        """Return the texts of all notifications, oldest first, expired ones too."""
        return [each.message for each in getattr(self.pilot.app._notifications, textual_for_tests.POSTED, ())]

    def lines(self) -> str:
        """Return everything that is drawn, as text."""
        compositor = self.pilot.app.screen._compositor
        return "\n".join("".join(s.text for s in strip) for strip in compositor.render_strips())
