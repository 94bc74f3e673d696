"""The main screen in a test's words: opened on real captures, driven by keys and clicks."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot
from textual.widgets import Static

from dissector.capture_file import Capture
from tests.conftest import PCAPS
from tui.app import KDissectApp
from tui.screens.main import MainScreen
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree

JAVA = str(PCAPS / "java.pcapng")


class Screen:
    """The screen in a test's words."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot

    @property
    def main(self) -> MainScreen:
        """The main screen, also where a menu is over it."""
        return next(screen for screen in self.pilot.app.screen_stack if isinstance(screen, MainScreen))

    @property
    def list(self) -> ExchangeList:
        return self.main.query_one(ExchangeList)

    @property
    def bytes(self) -> BytesPane:
        return self.main.query_one(BytesPane)

    @property
    def fields(self) -> FieldTree:
        return self.main.query_one(FieldTree)

    @property
    def row(self) -> int:
        return self.list.cursor

    @property
    def path(self) -> str:
        return self.main.model.node.path if self.main.model.node is not None else ""

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    async def until(self, true: Callable[[], object]) -> None:
        """Wait for it, not for all that runs; the bound is for a hang."""
        for _ in range(600):
            await self.pilot.pause(0.05)
            if true():
                return
        raise AssertionError(self.lines())

    def text(self, selector: str) -> str:
        return str(self.main.query_one(selector, Static).render())

    def lines(self) -> str:
        """All that is drawn, as text."""
        compositor = self.pilot.app.screen._compositor
        return "\n".join("".join(s.text for s in strip) for strip in compositor.render_strips())


@asynccontextmanager
async def opened(*paths: str, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with Capture(paths) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen


async def to(screen: Screen, api: str) -> None:
    """Go to the first exchange of an API."""
    capture = screen.main.model.capture
    screen.list.cursor = next(n for n in range(len(capture)) if capture.row(n).api == api)
    await screen.settle()
