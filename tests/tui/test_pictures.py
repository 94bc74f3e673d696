"""Every screen looks as somebody saw it, at three sizes, and in the light theme at one; in `make test` those that
differ most, at one size."""

from collections.abc import Iterator, Sequence

import pytest

from tests.tui.pictures import (
    ALL_LOOKS,
    DIFFERENT,
    DRAWN,
    KEPT,
    LOOKS,
    PICTURES,
    Look,
    Picture,
    draw,
    file_name,
    kept,
)

pytestmark = pytest.mark.slow


def runs() -> Iterator[object]:
    for picture in PICTURES:
        for looks in picture.runs:
            is_first = looks == picture.runs[0]
            is_left_out = picture.name not in DIFFERENT or (picture.name not in ALL_LOOKS and not is_first)
            is_long = len(looks) > 1 and picture.name not in ALL_LOOKS
            marks = pytest.mark.exhaustive if is_left_out else pytest.mark.long if is_long else ()
            name = "-".join(f"{width}x{height}-{theme}" for (width, height), theme in looks)
            yield pytest.param(picture, looks, marks=marks, id=f"{picture.name}-{name}")


@pytest.mark.long
@pytest.mark.parametrize(("picture", "looks"), list(runs()))
async def test_a_screen_looks_as_its_kept_picture(picture: Picture, looks: Sequence[Look]) -> None:
    drawn = await draw(picture, looks)
    different = [name for name, svg in drawn.items() if svg != kept(name)]
    for name in different:
        DRAWN.mkdir(parents=True, exist_ok=True)
        (DRAWN / name).write_text(drawn[name])
    assert not different, f"look at {DRAWN}; right? python -m tests.tui.pictures {picture.name}"


def test_every_kept_picture_is_drawn() -> None:
    kept_names = {path.name.removesuffix("z") for path in KEPT.iterdir()}
    assert kept_names == {file_name(picture, *how) for picture in PICTURES for how in LOOKS}
