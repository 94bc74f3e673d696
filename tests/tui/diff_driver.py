"""Drives the diff screen on two captures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.widgets import Static

from dissector.analysis.diff import DiffSide, PairVerdict
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.tui.driver import Driven
from tui.app import KDissectApp
from tui.diff_model import DiffModel
from tui.exchange_model import ExchangeModel
from tui.screens.diff_screen import DiffScreen

JAVA, LIBRDKAFKA = (str(PCAPS / f"compare-{name}.pcapng") for name in ("java-1", "librdkafka-1"))
AGAIN = str(PCAPS / "compare-java-2.pcapng")


class Screen(Driven):
    """The diff screen under test."""

    @property
    def diff(self) -> DiffScreen:
        screen = self.pilot.app.screen
        assert isinstance(screen, DiffScreen)
        return screen

    @property
    def model(self) -> DiffModel:
        assert self.diff.model is not None
        return self.diff.model

    @property
    def rows(self) -> tuple[int | None, int | None]:
        pair = self.model.pair
        return (None, None) if pair is None else (pair.a, pair.b)

    @property
    def path(self) -> str:
        return self.model.lines[self.model.line].path

    @property
    def sides(self) -> list[ExchangeModel]:
        return list(self.model.sides)

    def text(self, selector: str) -> str:
        return str(self.pilot.app.screen.query_one(selector, Static).render())


@asynccontextmanager
async def opened(a: str = JAVA, b: str = LIBRDKAFKA, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with Capture([a]) as one, Capture([b]) as other:
        sides = [DiffSide(capture, Path(capture.names[0]).stem) for capture in (one, other)]
        app = KDissectApp(DiffScreen(sides[0], sides[1]))
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen


async def to_cause(screen: Screen, api: str, path: str) -> None:
    """Move the cursor to a cause."""
    entries = screen.model.comparison.entries
    screen.diff.causes.cursor = next(n for n, e in enumerate(entries) if (e.api, e.path) == (api, path))
    await screen.settle()


async def to_pair(screen: Screen, api: str, verdict: PairVerdict) -> None:
    """Go to the first pair of an API with a verdict, in the list of pairs."""
    if not screen.diff.shows_pairs:
        await screen.press("v")
    model = screen.model
    for position, place in enumerate(model.shown):
        pair = model.comparison.pairs[place]
        row = (0, pair.a) if pair.a is not None else (1, pair.b)
        if pair.verdict is verdict and row[1] is not None and model.api(row[0], row[1]) == api:
            screen.diff.pairs.cursor = position
            await screen.settle()
            return
    raise AssertionError(f"no pair of {api} is {verdict}")
