"""The text of a connection: every message once, in order of time, read on as needed, masked, searched, exported."""

from pathlib import Path

import pytest
from textual.widgets import Input

from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.tui.main_driver import JAVA, Screen, opened
from tui.connection_text import FIRST_ELEMENTS, LEAST_FOLDED, ConnectionText, TextLine, folded
from tui.screens.follow_screen import FollowScreen
from tui.widgets.line_list import LineList


def follow(screen: Screen) -> FollowScreen:
    found = screen.pilot.app.screen
    assert isinstance(found, FollowScreen)
    return found


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("name", ["java", "trouble-rebalance-loop", "java-sasl-plain"])
def test_every_message_of_a_connection_is_there_once_in_order_of_time(name: str) -> None:
    with Capture([str(PCAPS / f"{name}.pcapng")]) as capture:
        exchanges = list(capture.exchanges())
        for connection in {each.fields.connection for each in exchanges}:
            of_it = [each for each in exchanges if each.fields.connection == connection]
            text = ConnectionText(capture, connection)
            heads = [next(iter(text.message(at))) for at in range(len(text))]
            sides = [
                (message.time_ns, each.fields.number - 1, side)
                for each in of_it
                for side, message in (("request", each.request), ("response", each.response))
                if message is not None
            ]
            assert [(head.number, head.side) for head in heads if head.text[0] in "→←"] == [
                (number, side) for _, number, side in sorted(sides)
            ]
            assert all(line.isprintable() for line in text.text())


def test_secrets_are_masked() -> None:
    with Capture([str(PCAPS / "java-sasl-plain.pcapng")]) as capture:
        list(capture.exchanges())
        with Capture([str(PCAPS / "java-sasl-plain.pcapng")], show_secrets=True) as other:
            list(other.exchanges())
            connections = {each.fields.connection for each in capture.exchanges("api == SaslAuthenticate")}
            masked = ["\n".join(ConnectionText(capture, each).text()) for each in connections]
            shown = ["\n".join(ConnectionText(other, each).text()) for each in connections]
    assert masked != shown
    assert all("***" in text for text in masked)


@pytest.mark.long
async def test_both_sides_are_read_searched_narrowed_and_opened() -> None:
    async with opened(JAVA) as screen:
        await screen.press("9", "G", "f")
        assert any("shows both sides as text" in words for words in screen.notifications())
        await screen.press("V")
        lines = follow(screen).query_one(LineList)
        assert "Produce" in screen.lines()
        await screen.press("slash")
        screen.pilot.app.screen.query_one(Input).value = "BASE_OFFSET"
        await screen.press("enter")
        found = follow(screen)._place(follow(screen)._shown[lines.cursor])
        assert "base_offset" in found.path
        await screen.press("n")
        await screen.press("s")
        assert {follow(screen)._place(line).side for line in follow(screen)._shown} == {"request"}
        await screen.press("s", "s", "G", "enter")
        assert screen.pilot.app.screen is screen.main
        assert screen.main.model.side == "response"


@pytest.mark.exhaustive
async def test_a_long_connection_is_read_as_one_scrolls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.screens.follow_screen.AHEAD", 10)
    monkeypatch.setattr("tui.screens.follow_screen.MESSAGES_AT_ONCE", 1)
    async with opened(str(PCAPS / "librdkafka.pcapng"), size=(80, 24)) as screen:
        counts = [screen.main.capture.rows.connection_of(row) for row in range(len(screen.main.capture))]
        screen.list.cursor = counts.index(max(set(counts), key=counts.count))
        await screen.settle()
        await screen.press("V")
        made, total = follow(screen)._made, len(follow(screen)._text or ())
        assert made < total
        lines = follow(screen).query_one(LineList)
        while follow(screen)._made < total:
            lines.action_end(1)
            await screen.settle()
        assert sum(line.is_head for line in follow(screen)._lines) == total


@pytest.mark.exhaustive
async def test_the_text_is_written_to_a_file(tmp_path: Path) -> None:
    async with opened(JAVA) as screen:
        await screen.press("V")
        await screen.pilot.press("x")
        await screen.until(lambda: screen.pilot.app.screen.query(Input))
        screen.pilot.app.screen.query_one(Input).value = str(tmp_path / "text.txt")
        await screen.pilot.press("enter")
        await screen.until(lambda: any("text.txt" in words for words in screen.notifications()))
        connection = screen.main.capture.rows.connection_of(0)
        expected = "".join(f"{line}\n" for line in ConnectionText(screen.main.capture, connection).text())
    assert (tmp_path / "text.txt").read_text() == expected


def test_parts_of_the_encoding_are_no_lines() -> None:
    with Capture([JAVA]) as capture:
        list(capture.exchanges())
        words = "\n".join(ConnectionText(capture, capture.rows.connection_of(8)).text())
    encoding = ("(count)", "(size)", "(length)", "(tag)", "(tagged fields)", "(value)")
    assert not [name for name in encoding if name in words]
    assert "finalized_features_epoch: 130" in words
    assert "batch_length: 1484" in words


def _element(at: int) -> TextLine:
    return TextLine(f"  [{at}] x", 0, "request", f"body.keys[{at}]")


@pytest.mark.parametrize("count", [0, 1, FIRST_ELEMENTS + LEAST_FOLDED, FIRST_ELEMENTS + LEAST_FOLDED + 1, 75])
def test_of_many_elements_the_first_are_lines_and_the_others_are_counted(count: int) -> None:
    lines = [
        TextLine("→ 1", 0, "request", is_head=True),
        *map(_element, range(count)),
        TextLine("  end: 1", 0, "request"),
    ]
    found = list(folded(lines))
    hidden = count - FIRST_ELEMENTS if count > FIRST_ELEMENTS + LEAST_FOLDED else 0
    assert len(found) == len(lines) - hidden + (hidden > 0)
    assert [lines[at] == line for at, line, folds in found if not folds] == [True] * (len(lines) - hidden)
    assert [line.text for _, line, folds in found if folds] == [f"  … {hidden} more: Enter or m shows them"] * (
        hidden > 0
    )


@pytest.mark.long
async def test_long_arrays_are_folded_and_a_word_in_them_is_still_found() -> None:
    async with opened(JAVA) as screen:
        await screen.press("V")
        lines = follow(screen).query_one(LineList)
        folded_count = lines.count
        assert "more: Enter or m shows them" in screen.lines()
        await screen.press("m")
        assert lines.count > folded_count
        assert "more: Enter or m shows them" not in screen.lines()
        await screen.press("m")
        assert lines.count == folded_count
        await screen.press("slash")
        screen.pilot.app.screen.query_one(Input).value = "[20] api_key"
        await screen.press("enter")
        assert follow(screen)._place(follow(screen)._shown[lines.cursor]).path.endswith("api_keys[20]")
        await screen.press("m")
        while "more: Enter" not in follow(screen)._shown[lines.cursor].pieces[0][0]:
            await screen.press("j")
        await screen.press("enter")
        assert lines.count > folded_count
