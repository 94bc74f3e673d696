"""Lists of options on terminals that have no line for them."""

import pytest

from tests.tui.main_driver import JAVA, opened

pytestmark = pytest.mark.slow


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
