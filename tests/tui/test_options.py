"""Lists of options on terminals that have no line for them; clicks on what was drawn before a list became shorter."""

import pytest
from rich.style import Style
from textual import events
from textual.app import App, ComposeResult
from textual.widgets import OptionList

from tests.tui.main_driver import JAVA, opened
from tui.widgets.options import Options

pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "rows"),
    [
        ("z", 2),
        ("ctrl+p", 3),
        pytest.param("z", 3, marks=pytest.mark.exhaustive),
        pytest.param("ctrl+p", 2, marks=pytest.mark.exhaustive),
    ],
)
async def test_pages_of_a_menu_on_a_low_terminal(key: str, rows: int) -> None:
    async with opened(JAVA, size=(80, rows)) as screen:
        pilot = screen.pilot
        await pilot.press(key)
        for page in ("pagedown", "pageup", "end", "pagedown", "home"):
            await pilot.press(page)
        await pilot.press("escape")
        assert pilot.app.return_code in (None, 0)


class _Lists(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.selected: list[int] = []

    def compose(self) -> ComposeResult:
        yield Options(*map(str, range(6)))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.selected.append(event.option_index)


@pytest.mark.parametrize(("left", "selected"), [(6, [5]), (5, [])])
async def test_a_click_on_an_option_that_is_gone_selects_nothing(left: int, selected: list[int]) -> None:
    app = _Lists()
    async with app.run_test(size=(40, 10)) as pilot:
        options = app.query_one(Options)
        for _ in range(6 - left):
            options.remove_option_at_index(0)
        drawn = Style.from_meta({"option": 5})
        options.post_message(events.Click(options, 1, 5, 0, 0, 1, False, False, False, style=drawn))
        await pilot.pause()
        assert app.selected == selected
