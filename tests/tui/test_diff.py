"""The diff screen, driven by keys and clicks on real captures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.exchange_pairs import ExchangePairs
from dissector.capture_session import Capture
from tests.traffic import Turn, conversation, ethernet, pcap, request, response
from tests.tui.diff_driver import AGAIN, JAVA, LIBRDKAFKA, Screen, opened
from tests.tui.driver import SIZES
from tui.app import KDissectApp
from tui.diff_model import DiffModel
from tui.screens.diff_screen import DiffScreen
from tui.screens.help_screen import HelpScreen
from tui.screens.main_screen import MainScreen


@pytest.mark.long
async def test_it_has_causes_fields_and_the_result_at_every_size_and_in_every_theme() -> None:
    async with opened(size=SIZES[0]) as screen:
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            count = len(screen.model.comparison.entries)
            assert count > 20
            assert f"{count} {'≠' if size[0] < 70 else 'differences'}" in drawn
            for words in ("A compare-java", "⇄", "B compare-libr", "InitProd", "Fetch", "Help", "Pairs"):
                assert words in drawn, (words, size)
            assert ("A · request 0x" in drawn) is (size[0] >= 70)
        await screen.resize((80, 24))
        for theme in ("kdissect", "kdissect-light", "kdissect-color-blind", "textual-light", "nord"):
            screen.pilot.app.theme = theme
            await screen.press("v")
            assert "≠" in screen.lines(), theme


@pytest.mark.long
async def test_v_goes_from_causes_to_pairs_and_back() -> None:
    async with opened(size=(120, 60)) as screen:
        assert not screen.diff.shows_pairs
        await screen.press("v")
        assert screen.diff.shows_pairs
        assert screen.diff.focused is screen.diff.pairs
        drawn = screen.lines()
        for words in ("verdict", "version, 3 fields", "only in A", "only in B", "repetition", "same here", "1 field"):
            assert words in drawn, words
        await screen.press("v")
        assert screen.diff.focused is screen.diff.causes


@pytest.mark.exhaustive
async def test_tab_goes_round_the_panes_and_keys_move_in_the_lists() -> None:
    async with opened() as screen:
        diff = screen.diff
        wanted = [diff.differences, *diff.panes, diff.causes]
        for pane in wanted:
            await screen.press("tab")
            assert diff.focused is pane
        await screen.press("shift+tab")
        assert diff.focused is diff.panes[1]
        await screen.press("tab")
        assert screen.diff.causes.cursor == 0, "the first cause that a pair shows"
        last = screen.diff.causes.count - 1
        await screen.press("g")
        for keys, number in [("j", 1), ("down", 2), ("k", 1), ("up", 0), ("G", last), ("g", 0), ("end", last),
                             ("f7", last - 1), ("f8", last), ("home", 0), ("n", 1), ("N", 0)]:  # fmt: skip
            await screen.press(keys)
            assert screen.diff.causes.cursor == number, keys
        await screen.press("pagedown")
        assert screen.diff.causes.cursor > 1
        await screen.press("pageup")
        assert screen.diff.causes.cursor == 0


@pytest.mark.exhaustive
async def test_a_click_selects_a_line_and_a_double_click_opens_it() -> None:
    async with opened() as screen:
        await screen.pilot.click("#causes", offset=(10, 2))
        await screen.settle()
        assert screen.diff.causes.cursor == 1
        await screen.pilot.click("#causes", offset=(10, 2), times=2)
        await screen.settle()
        assert screen.diff.shows_pairs
        await screen.pilot.click("#pairs", offset=(10, 4))
        await screen.settle()
        assert screen.diff.pairs.cursor == 3
        await screen.pilot.click("#pairs", offset=(10, 4), times=2)
        await screen.settle()
        assert screen.diff.focused is screen.diff.differences
        await screen.pilot.click("#differences", offset=(10, 3))
        await screen.settle()
        assert screen.model.line == 1


@pytest.mark.exhaustive
async def test_help_shows_the_keys_of_this_screen() -> None:
    async with opened(size=(160, 80)) as screen:
        await screen.press("question_mark")
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        drawn = screen.lines()
        for words in ("List ignored differences", "Swap A and B", "Next, previous difference"):
            assert words in drawn, words


@pytest.mark.exhaustive
async def test_the_same_program_twice_is_the_same() -> None:
    async with opened(JAVA, AGAIN) as screen:
        assert "the same · " in screen.text("#title")
        assert screen.diff.shows_pairs
        await screen.press("n")
        assert any(words.startswith("no more pair differs") for words in screen.notifications()) or screen.rows != (
            None,
            None,
        )


@pytest.mark.long
async def test_without_colors_cursor_and_signs_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened() as screen:
        strips = screen.diff._compositor.render_strips()
        chosen = next(strip for strip in strips if strip.text.startswith("▸"))
        assert any(segment.style is not None and segment.style.reverse for segment in chosen)
        assert "≠" in screen.lines()
        assert "−" in screen.lines()
        assert "+ " in screen.lines()


async def test_a_side_without_kafka_is_reported(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    async with opened(JAVA, str(empty)) as screen:
        assert "B is empty: no Kafka requests" in screen.lines()


@pytest.mark.long
async def test_no_control_character_from_the_wire_is_drawn(tmp_path: Path) -> None:
    hostile = "[/nope]\x1b]0;gone\x07‮".encode()
    files = []
    for n, client in enumerate((hostile, b"plain")):
        body = b"\x00\x00\x00\x01" + len(client).to_bytes(2) + client
        turns = [Turn(True, request(1, body=body)), Turn(False, response(1))]
        file = tmp_path / f"{n}[x].pcap"
        file.write_bytes(pcap([ethernet(packet) for packet in conversation(turns)]))
        files.append(str(file))
    async with opened(*files) as screen:
        for keys in ("", "v", "y", "tab", "equals_sign", "y", "i"):
            if keys:
                await screen.press(keys)
            drawn = screen.lines()
            assert "\x1b" not in drawn
            assert "\x07" not in drawn
            assert "‮" not in drawn
        assert all(character.isprintable() for character in screen.pilot.app.clipboard)


@pytest.mark.exhaustive
async def test_q_closes_the_screen_and_stops_the_comparison() -> None:
    with Capture([JAVA]) as one, Capture([LIBRDKAFKA]) as other:
        app = KDissectApp(MainScreen(one))
        async with app.run_test(size=(120, 40)) as pilot:
            await Screen(pilot).settle()
            await app.push_screen(DiffScreen(DiffSide(one, "a"), DiffSide(other, "b")))
            await Screen(pilot).press("q")
            assert isinstance(app.screen, MainScreen)


@pytest.mark.long
async def test_a_hundred_thousand_pairs_cost_no_more_than_what_is_drawn() -> None:
    async with opened() as screen:
        comparison = screen.model.comparison
        pairs = comparison.pairs
        columns = [np.tile(column, 2_500) for column in (pairs._a, pairs._b, pairs._verdicts)]
        many = replace(comparison, pairs=ExchangePairs(*columns))
        captures = [end.capture for end in screen.diff.ends]
        model = DiffModel(many, captures[0], captures[1])
        assert len(model.shown) > 100_000
        screen.diff._show_comparison(model)
        await screen.press("v", "G", "pageup", "pageup")
        assert screen.diff.pairs.cursor > 100_000
        looked = model.differing.cache_info()
        assert looked.hits + looked.misses < 500


@pytest.mark.long
async def test_what_follows_from_a_cause_ends_with_an_ellipsis_where_it_is_cut() -> None:
    async with opened(size=(80, 24)) as screen:
        assert screen.text("#inspector").count("\n") == 3
        assert screen.text("#inspector").endswith("…")
        await screen.resize((200, 60))
        assert not screen.text("#inspector").endswith("…")
