"""The lists of the diff screen are drawn at any time: also between a new comparison and its first pair."""

from tests.tui.diff_driver import opened
from tui.diff_model import DiffModel


async def test_the_differences_stay_until_those_of_the_next_comparison_are_shown() -> None:
    async with opened() as screen:
        before = screen.model
        assert before.lines
        model = DiffModel(before.comparison, *(side.capture for side in screen.diff.ends))
        screen.diff._show_comparison(model)
        screen.diff.differences.redraw()
        lines = [screen.diff.differences.render_line(y).text for y in range(1, 3)]
        assert any(line.strip() for line in lines)
        await screen.settle()
        assert screen.model.lines
