"""Every screen looks as somebody saw it, at three sizes, and in the light theme at one."""

from collections.abc import Sequence

import pytest

from tests.tui.pictures import DRAWN, KEPT, LOOKS, PICTURES, Picture, Size, draw, file_name, kept

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("picture", "sizes"),
    [
        pytest.param(picture, sizes, id=f"{picture.name}-{'-'.join(f'{x}x{y}' for x, y in sizes)}")
        for picture in PICTURES
        for sizes in picture.runs
    ],
)
async def test_a_screen_looks_as_somebody_saw_it(picture: Picture, sizes: Sequence[Size]) -> None:
    drawn = await draw(picture, sizes)
    different = [name for name, svg in drawn.items() if svg != kept(name)]
    for name in different:
        DRAWN.mkdir(parents=True, exist_ok=True)
        (DRAWN / name).write_text(drawn[name])
    assert not different, f"look at {DRAWN}; right? python -m tests.tui.pictures {picture.name}"


def test_every_saved_picture_is_drawn() -> None:
    kept_names = {path.name.removesuffix("z") for path in KEPT.iterdir()}
    assert kept_names == {file_name(picture, *how) for picture in PICTURES for how in LOOKS}
