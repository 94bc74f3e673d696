"""The dialogs of a proxy, as they look: rules for faults, held messages."""

import pytest

from dissector.capture.fault_counts import FaultCount
from tests.cases import cases
from tests.tui import proxy_dialogs
from tests.tui.main_driver import JAVA, opened
from tui.screens.faults_screen import _rule_line

RULE = "api == Produce && topic == orders: error NOT_LEADER_OR_FOLLOWER, first 3"


@cases(("width", "indent", "count"), [(200, 0, 1), (71, 27, 2), (50, 10, 3), (40, 10, 5)])
def test_a_rule_continues_below_its_beginning_or_is_below_its_counts(width: int, indent: int, count: int) -> None:
    head, *more = _rule_line(FaultCount("moved", RULE, 40, 12, 3, 0), width).plain.split("\n")
    assert len(more) == count - 1
    assert " ".join(each.strip() for each in (head[27:], *more)).strip() == RULE
    assert {len(each) - len(each.lstrip()) for each in more} == ({indent} if more else set())
    assert all(len(each) <= width for each in (head, *more))


def test_what_a_rule_could_not_change_is_counted() -> None:
    assert "fired 2 of 3  1 could not be changed  api" in _rule_line(FaultCount("3", "api", 40, 3, 2, 1), 100).plain


@pytest.mark.long
@pytest.mark.slow
async def test_the_keys_of_held_messages_fit_eighty_cells() -> None:
    async with opened(JAVA, size=(80, 24)) as screen:
        screen.pilot.app.push_screen(proxy_dialogs.held())
        await screen.settle()
        assert "i filter · JK scroll " in screen.lines()
