"""The findings of a capture and of an exchange, and how to go to them; slow exchanges."""

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from rich.style import Style
from rich.text import Text

from dissector.capture_session import Capture
from dissector.core.text import clean, seconds
from tests.conftest import PCAPS, some_of
from tests.findings.conversations import Talk, grown, produce, written
from tests.tui.main_driver import JAVA, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.findings_model import KEPT, FindingPlace, FindingsModel
from tui.screens.findings_screen import SECONDS_BETWEEN, FindingDialog, FindingsScreen, _who
from tui.screens.main_screen import MainScreen


def test_the_model_has_all_findings_of_all_rows() -> None:
    with Capture([JAVA]) as capture:
        for _ in capture.read():
            pass
        model = FindingsModel(capture)
        for _ in model.analyze():
            assert 0 <= model.done <= model.total
        assert model.done == model.total
        assert not model.needs_analysis
        found = [f.code for n in range(len(capture)) for f in capture.exchange(n).findings]
        assert sum(group.count for group in model.groups()) == len(found) > 0
        for group in model.groups():
            assert group.count == found.count(group.code)
            for row, finding in group.kept[:KEPT]:
                assert finding in capture.exchange(row).findings


@pytest.mark.long
async def test_findings_are_listed_by_kind_and_lead_to_their_field(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("F", "enter")
        assert isinstance(screen.pilot.app.screen, FindingsScreen)
        assert screen.pilot.app.screen._tree.root.children[0].is_expanded
        await screen.press("escape", "F")
        assert isinstance(screen.pilot.app.screen, FindingsScreen)
        drawn = screen.lines()
        assert "all analyzed" in drawn
        assert "error-response" in drawn
        tree = screen.pilot.app.screen._tree
        node = next(n for n in tree.root.children if "error-response" in str(n.label))
        tree.move_cursor(node)
        await screen.press("question_mark")
        assert isinstance(screen.pilot.app.screen, FindingDialog)
        assert "What to do" in screen.lines()
        await screen.press("escape", "enter", "down")
        row, finding = tree.cursor_node.data
        about = " ".join(screen.pilot.app.screen.query_one("#about").render().plain.split())
        assert about == clean(finding.message)  # its line in the list may be cut
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert screen.row == row
        assert f"{screen.main.model.side}.{screen.path}".startswith(finding.path)
        assert screen.path.endswith("error_code")
        await screen.press("F", "escape")
        assert screen.row == row


@pytest.mark.exhaustive
async def test_a_list_of_findings_without_news_is_not_drawn_again(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("F")
        assert isinstance(screen.pilot.app.screen, FindingsScreen)
        assert "all analyzed" in screen.lines()
        lines = screen.pilot.app.screen._tree.root.children
        drawn = [line.label for line in lines]
        await screen.pilot.pause(3 * SECONDS_BETWEEN)
        assert all(line.label is label for line, label in zip(lines, drawn, strict=True))


@pytest.mark.long
async def test_findings_say_who_and_when_and_those_of_a_connection_are_together() -> None:
    async with opened(str(PCAPS / "trouble-rebalance-loop.pcapng"), size=(200, 60)) as screen:
        await screen.press("F", "enter")
        drawn = (line.split("│")[1] for line in screen.lines().splitlines() if "│" in line)
        lines = [line for line in drawn if "MEMBER_ID_REQUIRED:" in line or "NOT_COOR" in line]
        capture = screen.main.capture
        for line in lines:
            row = capture.exchange(int(line.split()[0]) - 1).row
            when = seconds(row.time_ns - capture.start_ns)
            assert line.split()[1:4] == [when, f"C{row.connection}", row.client_id]
        connections = [line.split()[2] for line in lines]
        assert [*dict.fromkeys(connections)] == [name for name, _ in groupby(connections)]


@pytest.mark.exhaustive
async def test_the_first_finding_of_the_row_is_shown_and_i_explains_all(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await screen.press("e")
        assert "GROUP_ID_NOT_FOUND" in screen.text("#inspector")
        assert "i explains" in screen.text("#inspector")
        await screen.press("i")
        assert isinstance(screen.pilot.app.screen, FindingDialog)
        assert "MEMBER_ID_REQUIRED" in screen.lines()
        await screen.press("i")
        await to(screen, "Metadata")
        await screen.press("i")
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert any("has no findings" in words for words in screen.notifications())


@pytest.mark.long
async def test_s_goes_to_exchanges_with_the_finding_slow() -> None:
    async with opened(str(PCAPS / "trouble-slow.pcapng")) as screen:
        slow = [e.row.number - 1 for e in screen.main.capture.exchanges('finding == "slow"')]
        for row in slow:
            await screen.press("s")
            assert screen.row == row
        for row in reversed(slow[:-1]):
            await screen.press("S")
            assert screen.row == row
        await screen.press("S")
        assert any("no earlier slow exchanges" in words for words in screen.notifications())
        await screen.press("G", "s")
        assert any("no more slow exchanges" in words for words in screen.notifications())


@pytest.mark.long
async def test_cross_message_findings_appear_by_themselves() -> None:
    path = str(PCAPS / "trouble-metadata-storm.pcapng")
    with Capture([path]) as capture:
        list(capture.exchanges())
        list(capture.findings.examine())
        row, finding = capture.findings.cross_message()[0]
    async with opened(path) as screen:
        await screen.press(*str(row + 1), "G")
        assert f"[{finding.code}]" in screen.lines()
        assert finding.message in screen.text("#inspector")
        await screen.press("i")
        assert isinstance(screen.pilot.app.screen, FindingDialog)


@pytest.mark.exhaustive
async def test_the_selected_row_gets_its_findings_too(tmp_path: Path) -> None:
    talk = Talk()
    produce(talk, 0, throttle=100)
    async with opened(written(tmp_path, talk)) as screen:
        assert screen.row == 0
        assert "[throttled]" in screen.lines()
        assert "was throttled for 100 ms" in screen.text("#inspector")


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    some_of(
        ["java.pcapng", "trouble-metadata-storm.pcapng", "librdkafka-pipelined.pcapng"],
        "java.pcapng", "trouble-metadata-storm.pcapng",
    ),
)  # fmt: skip
def test_the_first_row_with_a_warning_does_not_depend_on_how_much_is_analyzed(name: str) -> None:
    with Capture([str(PCAPS / name)]) as capture:
        for _ in capture.read():
            pass
        for _ in capture.findings.examine():
            pass
        wrong = [number for number in range(len(capture)) if capture.has_warning(number)]
        rows = np.arange(len(capture))
        fresh, whole = FindingsModel(capture), FindingsModel(capture)
        for _ in whole.analyze():
            pass
        beside = {row + step for row in wrong for step in (0, 1)}  # where the answer changes
        for start in sorted({*range(0, len(rows), 1 + len(rows) // 100), *beside} & {*range(len(rows))}):
            expected = next((number for number in wrong if number >= start), None)
            assert fresh.first(rows[start:]) == whole.first(rows[start:]) == expected
        assert whole.first(rows[::-1]) == (wrong[-1] if wrong else None)


def test_analyzed_rows_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with Capture([JAVA]) as capture:
        for _ in capture.read():
            pass
        model = FindingsModel(capture)
        for _ in model.analyze():
            pass
        monkeypatch.setattr(capture, "has_warning", None)
        assert model.first(np.arange(len(capture))) is not None


@pytest.mark.long
def test_rows_completed_later_are_analyzed_then(tmp_path: Path) -> None:
    recorded = PCAPS / "trouble-metadata-storm.pcapng"
    whole = recorded.read_bytes()
    model = None
    for capture in grown(tmp_path / "growing.pcapng", whole, [len(whole) * n // 12 for n in range(1, 12)]):
        model = model or FindingsModel(capture)
        for _ in model.analyze():
            pass
        found = {group.code: group.count for group in model.groups()}
        again = FindingsModel(capture)
        for _ in again.analyze():
            pass
        assert found == {group.code: group.count for group in again.groups()}
    assert found


@pytest.mark.exhaustive
async def test_kinds_have_the_color_that_their_rows_have_in_the_list() -> None:
    async with opened(JAVA) as screen:
        for theme in ("kdissect", "kdissect-light", "ansi-dark"):
            screen.pilot.app.theme = theme
            await screen.press("F")
            findings = screen.pilot.app.screen
            assert isinstance(findings, FindingsScreen)
            node = next(n for n in findings._tree.root.children if "error-response" in str(n.label))
            assert isinstance(node.label, Text)
            [mark, *_] = node.label.spans
            listed = screen.list.get_component_rich_style("list--warning", partial=True).color
            assert isinstance(mark.style, Style)
            assert mark.style.color == listed, theme
            assert "error-response" in screen.lines()
            await screen.press("escape")


def test_only_rows_with_findings_are_decoded_for_their_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with Capture([JAVA]) as capture:
        for _ in capture.read():
            pass
        with_findings, at = [row for row in range(len(capture)) if capture.exchange(row).findings], capture.at
        for _ in capture.findings.examine_messages(np.arange(len(capture))):
            pass
        decoded: list[int] = []
        monkeypatch.setattr(capture, "at", lambda rows: at(decoded.extend(rows.tolist()) or rows))
        for _ in FindingsModel(capture).analyze():
            pass
        assert [row for row in decoded if row not in with_findings] == []
        assert set(decoded) == {
            row for row in with_findings if capture.findings.may_have_message_findings(np.array([row]))[0]
        }


@pytest.mark.parametrize("client", ["", "me", "注文テーブル-consumer-12", "注文", "études-consumer-group-1"])
def test_messages_begin_in_one_column_whatever_the_client_is_called(client: str) -> None:
    assert _who(FindingPlace(7, client, []), first=True).cell_len == len("C7     ") + 18
