"""Every screen looks as somebody saw it, at three sizes, and in the light theme at one."""

from collections.abc import Iterator, Sequence

import pytest

from tests.tui.pictures import DRAWN, KEPT, LARGE, LOOKS, PICTURES, Picture, Size, draw, file_name, kept

pytestmark = pytest.mark.slow


def runs() -> Iterator[object]:
    for picture in PICTURES:
        for sizes in picture.runs:
            marks = (pytest.mark.exhaustive,) if picture.name != "main" and sizes == (LARGE,) else ()
            name = "-".join(f"{width}x{height}" for width, height in sizes)
            yield pytest.param(picture, sizes, marks=marks, id=f"{picture.name}-{name}")


@pytest.mark.parametrize(("picture", "sizes"), list(runs()))
async def test_a_screen_looks_as_its_kept_picture(picture: Picture, sizes: Sequence[Size]) -> None:
    drawn = await draw(picture, sizes)
    different = [name for name, svg in drawn.items() if svg != kept(name)]
    for name in different:
        DRAWN.mkdir(parents=True, exist_ok=True)
        (DRAWN / name).write_text(drawn[name])
    assert not different, f"look at {DRAWN}; right? python -m tests.tui.pictures {picture.name}"


def test_every_kept_picture_is_drawn() -> None:
    kept_names = {path.name.removesuffix("z") for path in KEPT.iterdir()}
    assert kept_names == {file_name(picture, *how) for picture in PICTURES for how in LOOKS}
