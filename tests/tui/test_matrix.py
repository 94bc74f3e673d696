"""The matrix of several clients on the screen, and the way from a cell to its exchanges."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest
from rich.text import Text
from textual.widgets import DataTable

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.behavior import BEHAVIORS, place_of
from dissector.capture_session import Capture
from dissector.filter import parse
from tests.conftest import PCAPS
from tests.tui.driver import SIZES, Driven
from tui.app import KDissectApp
from tui.screens.diff_screen import DiffScreen
from tui.screens.main_screen import DetailScreen
from tui.screens.matrix_screen import MatrixScreen

NAMES = ("compare-java-1", "compare-librdkafka-1", "compare-aiokafka-1")


class Screen(Driven):
    """The matrix under test."""

    @property
    def table(self) -> "DataTable[Text]":
        return self.pilot.app.screen.query_one(DataTable)

    @property
    def matrix(self) -> MatrixScreen:
        return next(each for each in self.pilot.app.screen_stack if isinstance(each, MatrixScreen))

    async def to(self, behavior: str, side: int) -> None:
        """Move the cursor to a cell."""
        assert self.matrix.matrix is not None
        row = [name for name, _ in self.matrix.matrix.rows].index(behavior)
        self.table.move_cursor(row=row, column=side + 1)
        await self.settle()


@asynccontextmanager
async def opened(size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with ExitStack() as stack:
        captures = [stack.enter_context(Capture([str(PCAPS / f"{name}.pcapng")])) for name in NAMES]
        sides = [DiffSide(capture, name) for capture, name in zip(captures, NAMES, strict=True)]
        async with KDissectApp(MatrixScreen(sides)).run_test(size=size) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            yield screen


@pytest.mark.long
async def test_it_shows_what_each_side_does_at_every_size() -> None:
    async with opened(SIZES[0]) as screen:
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            for words in ("Behavior of 3 sides", "differ", "compare-java", "acks" if size[1] > 20 else "retries"):
                assert words in drawn, (size, words)


@pytest.mark.long
async def test_enter_opens_the_exchanges_that_show_a_cell_at_their_field() -> None:
    async with opened() as screen:
        await screen.to("acks", 2)
        await screen.press("enter")
        detail = screen.pilot.app.screen
        assert isinstance(detail, DetailScreen)
        assert detail.model.node is not None
        assert detail.model.node.path == "body.acks"
        assert detail.model.number is not None
        assert detail.capture.exchange(detail.model.number).row.api == "Produce"
        (apis,) = detail.capture.index.columns(["api"], range(len(detail.capture)))
        assert len(detail.view) == apis.count("Produce")
        await screen.press("q")
        assert isinstance(screen.pilot.app.screen, MatrixScreen)
        await screen.to("Fetch version", 0)
        await screen.press("enter")
        detail = screen.pilot.app.screen
        assert isinstance(detail, DetailScreen)
        assert detail.model.node is not None
        assert detail.model.node.path == "header.request_api_version"


@pytest.mark.exhaustive
async def test_a_cell_without_exchanges_says_so_and_d_compares_its_side() -> None:
    async with opened() as screen:
        await screen.to("InitProducerId version", 1)
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, MatrixScreen)
        await screen.press("d")
        assert isinstance(screen.pilot.app.screen, DiffScreen)
        assert [end.label for end in screen.pilot.app.screen.ends] == [NAMES[0], NAMES[1]]
        await screen.press("q")
        assert isinstance(screen.pilot.app.screen, MatrixScreen)


def test_each_behavior_has_its_place() -> None:
    for name in (*BEHAVIORS, "Fetch version"):
        place = place_of(name)
        assert place is not None
        if place.filter:
            parse(place.filter)
