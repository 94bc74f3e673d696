"""Following what exchanges have in common: J, } and {."""

import pytest

from dissector.analysis.follow_keys import follow_keys
from tests.tui.main_driver import JAVA, to
from tests.tui.shared_screens import SharedScreens


@pytest.mark.long
async def test_braces_follow_a_partition_forwards_and_backwards(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "Produce")
        start = screen.row
        exchange = screen.main.model.exchange
        assert exchange is not None
        thread = next(t for t in follow_keys(exchange) if t.kind == "topic partition")
        node = exchange.request.tree.find(thread.path.removeprefix("request."))
        assert node is not None
        screen.main.choose_field(node)
        await screen.press("J", "1")
        rows = [start]
        while screen.row != rows[-1]:
            rows.append(screen.row)
            found = screen.main.model.exchange
            assert found is not None
            assert thread.holds(found)
            assert screen.path
            await screen.press("right_curly_bracket")
        assert len(rows) > 2
        assert any("no more exchanges of topic partition" in words for words in screen.notifications())
        for row in rows[-2::-1]:
            await screen.press("left_curly_bracket")
            assert screen.row == row


@pytest.mark.exhaustive
async def test_without_a_choice_a_menu_opens_and_escape_closes_it(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "JoinGroup")
        start = screen.row
        await screen.press("right_curly_bracket", "escape")
        assert screen.row == start
        await screen.press("right_curly_bracket")
        await screen.press("enter")
        assert screen.row > start
