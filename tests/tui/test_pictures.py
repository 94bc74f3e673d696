"""Every screen looks as somebody saw it, at three sizes, in each theme."""

import pytest

from tests.tui.pictures import DRAWN, PICTURES, SIZES, THEMES, Picture, draw, file_name, kept

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
async def test_a_screen_looks_as_somebody_saw_it(picture: Picture, size: tuple[int, int], theme: str) -> None:
    name = file_name(picture, size, theme)
    drawn = await draw(picture, size, theme)
    if drawn != kept(name):
        DRAWN.mkdir(parents=True, exist_ok=True)
        (DRAWN / name).write_text(drawn)
        pytest.fail(
            f"{name} looks different: look at {DRAWN / name}; right? python -m tests.tui.pictures {picture.name}"
        )
