"""Drives the main screen on real captures, with keys and clicks."""

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

from textual.widgets import Static

from dissector.capture_session import Capture, Progress
from tests.conftest import PCAPS
from tests.tui.driver import Driven
from tui.app import KDissectApp
from tui.screens.main_screen import MainScreen
from tui.widgets.bytes_pane import BytesPane
from tui.widgets.exchange_list import ExchangeList
from tui.widgets.field_tree import FieldTree

JAVA = str(PCAPS / "java.pcapng")


class Screen(Driven):
    """The main screen under test."""

    @property
    def main(self) -> MainScreen:
        """The main screen, also below a menu."""
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

    def text(self, selector: str) -> str:
        return str(self.main.query_one(selector, Static).render())


class Halting(Capture):
    """A capture that is read half, and to its end when the test allows it."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.may_end = threading.Event()

    def read(self, *, sort: bool = True) -> Iterator[Progress]:
        for progress in super().read(sort=sort):
            yield progress._replace(done=progress.total // 2)
            self.may_end.wait(60)


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
    screen.list.cursor = next(n for n in range(len(capture)) if capture.exchange(n).row.api == api)
    await screen.settle()
