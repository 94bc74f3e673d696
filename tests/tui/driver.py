"""Drives any screen: presses keys, waits, reads what is drawn."""

from collections.abc import Callable

from textual.pilot import Pilot


class Driven:
    """An application under test."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for a condition, not for everything that runs; the bound is for a hang."""
        for _ in range(600):
            await self.pilot.pause(0.05)
            if true():
                return
        raise AssertionError(self.lines())

    def lines(self) -> str:
        """Return everything that is drawn, as text."""
        compositor = self.pilot.app.screen._compositor
        return "\n".join("".join(s.text for s in strip) for strip in compositor.render_strips())
