"""Back and forward between locations: the history alone, and on the screen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.main_driver import JAVA, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.location_history import KEPT, Location, LocationHistory
from tui.messages import GoTo

PLACES = st.builds(Location, st.integers(0, 5), st.sampled_from(["request", "response"]), st.sampled_from(["", "body"]))


def everywhere(number: int) -> bool:
    return True


@given(st.lists(PLACES, max_size=30))
def test_going_all_the_way_back_and_forward_ends_where_it_began(jumps: list[Location]) -> None:
    history, here = LocationHistory(), Location(9)
    for target in jumps:
        history.push(here)
        here = target
    end = here
    steps = 0
    while (place := history.back(here, everywhere)) is not None:
        here, steps = place, steps + 1
    if steps:
        assert here == Location(9)
    for _ in range(steps):
        found = history.forward(here, everywhere)
        assert found is not None
        here = found
    assert here == end
    assert history.forward(here, everywhere) is None


def test_locations_that_the_list_hides_are_skipped() -> None:
    history = LocationHistory()
    for number in range(4):
        history.push(Location(number))
    assert history.back(Location(4), lambda number: number % 2 == 0) == Location(2)
    assert history.forward(Location(2), everywhere) == Location(4)


def test_a_jump_forgets_what_was_ahead() -> None:
    history = LocationHistory()
    history.push(Location(0))
    assert history.back(Location(1), everywhere) == Location(0)
    history.push(Location(0))
    assert history.forward(Location(7), everywhere) is None


def test_it_keeps_a_bounded_number_of_locations() -> None:
    history = LocationHistory()
    for number in range(3 * KEPT):
        history.push(Location(number))
    here, steps = Location(-1), 0
    while (place := history.back(here, everywhere)) is not None:
        here, steps = place, steps + 1
    assert (steps, here) == (KEPT, Location(2 * KEPT))


@pytest.mark.long
@pytest.mark.slow
async def test_back_returns_to_row_side_and_field_and_forward_reverses_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "Metadata")
        await screen.press("r", "enter", "down", "down")
        start = screen.main.place
        assert start is not None
        assert start.side == "response"
        assert start.path
        await screen.press("e")
        trouble = screen.main.place
        assert trouble is not None
        assert trouble.number != start.number
        for keys in ("ctrl+o", "alt+left"):
            await screen.press(keys)
            assert screen.main.place == start, keys
            assert screen.row == start.number
            assert screen.fields.cursor_node is not None
            assert screen.fields.cursor_node.data is screen.main.model.node
            await screen.press("alt+right")
            assert screen.row == trouble.number


@pytest.mark.exhaustive
@pytest.mark.slow
async def test_a_step_is_not_recorded_and_a_jump_to_the_last_row_is() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        await screen.press("j", "j", "k")
        await screen.press("ctrl+o")
        assert screen.row == 1
        await screen.press("G", "ctrl+o")
        assert screen.row == 1


@pytest.mark.exhaustive
@pytest.mark.slow
async def test_a_jump_selects_the_side_and_the_field_too(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("j")
        screen.main.post_message(GoTo(4, "response", "header.correlation_id"))
        await screen.settle()
        assert (screen.row, screen.main.model.side, screen.path) == (4, "response", "header.correlation_id")
        screen.main.post_message(GoTo(10**9))
        await screen.settle()
        assert screen.row == 4
        await screen.press("ctrl+o")
        assert screen.row == 1
