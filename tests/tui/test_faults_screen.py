"""The lines of the rules for faults."""

from dissector.capture.fault_counts import FaultCount
from tests.cases import cases
from tui.screens.faults_screen import _rule_line

RULE = "api == Produce && topic == orders: error NOT_LEADER_OR_FOLLOWER, first 3"


@cases(("width", "count"), [(200, 1), (71, 2), (50, 4), (40, 5)])
def test_a_rule_continues_below_its_beginning(width: int, count: int) -> None:
    head, *more = _rule_line(FaultCount("moved", RULE, 40, 12, 3, 0), width).plain.split("\n")
    assert len(more) == count - 1
    assert " ".join(each.strip() for each in (head[head.index("fired") + 15 :], *more)).strip() == RULE
    assert {len(each) - len(each.lstrip()) for each in more} <= {head.index("fired") + 15 if width >= 50 else 10}
    assert all(len(each) <= width for each in (head, *more))


def test_what_a_rule_could_not_change_is_counted() -> None:
    assert "fired 2 of 3  1 could not be changed  api" in _rule_line(FaultCount("3", "api", 40, 3, 2, 1), 80).plain
