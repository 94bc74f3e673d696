"""F, i, ? and the way to what was found; s and S."""

from dissector.capture_file import Capture
from tests.conftest import PCAPS
from tests.tui.test_main import JAVA, opened, to
from tui.screens.explained import ExplainedScreen
from tui.screens.findings import FindingsScreen
from tui.screens.main import MainScreen
from tui.troubles import KEPT, Troubles


def test_troubles_are_all_findings_of_all_rows_however_one_looks() -> None:
    with Capture([JAVA]) as capture:
        for _ in capture.read():
            pass
        troubles = Troubles()
        for done, total in troubles.gather(capture):
            assert 0 <= done <= total
        found = [f.code for n in range(len(capture)) for f in capture.exchange(n).findings]
        assert sum(group.count for group in troubles.groups()) == len(found) > 0
        for group in troubles.groups():
            assert group.count == found.count(group.code)
            for row, finding in group.kept[:KEPT]:
                assert finding in capture.exchange(row).findings


async def test_findings_are_listed_by_kind_and_lead_to_their_field() -> None:
    async with opened(JAVA) as screen:
        await screen.press("F")
        assert isinstance(screen.pilot.app.screen, FindingsScreen)
        drawn = screen.lines()
        assert "all looked at" in drawn
        assert "error-response" in drawn
        tree = screen.pilot.app.screen._tree
        node = next(n for n in tree.root.children if "error-response" in str(n.label))
        tree.move_cursor(node)
        await screen.press("question_mark")
        assert isinstance(screen.pilot.app.screen, ExplainedScreen)
        assert "What to do" in screen.lines()
        await screen.press("escape", "enter", "down")
        row, finding = tree.cursor_node.data  # type: ignore[misc, union-attr]
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == row
        assert f"{screen.main.model.side}.{screen.path}" == finding.path
        await screen.press("F", "escape")
        assert screen.row == row


async def test_i_explains_what_is_wrong_with_this_row() -> None:
    async with opened(JAVA) as screen:
        await screen.press("e", "i")
        assert isinstance(screen.pilot.app.screen, ExplainedScreen)
        assert "MEMBER_ID_REQUIRED" in screen.lines()
        await screen.press("i")
        await to(screen, "Metadata")
        await screen.press("i")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert any("nothing is wrong" in said.message for said in screen.pilot.app._notifications)


async def test_the_first_finding_is_said_below_with_who_explains_it() -> None:
    async with opened(JAVA) as screen:
        await screen.press("e")
        assert "MEMBER_ID_REQUIRED" in screen.text("#inspector")
        assert "i explains" in screen.text("#inspector")


async def test_s_goes_to_slow_exchanges_or_says_that_there_is_none() -> None:
    async with opened(str(PCAPS / "librdkafka-pipelined.pcapng")) as screen:
        await screen.press("s")
        first = screen.row
        if first:
            await screen.press("S")
            assert any("no earlier exchange slower" in said.message for said in screen.pilot.app._notifications)
        await screen.press("G", "s")
        assert any("no more exchange slower" in said.message for said in screen.pilot.app._notifications)
