"""The diff screen, driven by keys and clicks on real captures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static

from dissector.analysis.diff import Side, Verdict
from dissector.capture_file import Capture
from tests.conftest import PCAPS
from tests.traffic import Turn, conversation, ethernet, pcap, request, response
from tui.app import KDissectApp
from tui.diff_model import DiffModel
from tui.model import Model
from tui.screens.against import AskCapture
from tui.screens.aside import Aside
from tui.screens.diffing import DiffScreen
from tui.screens.help import HelpScreen
from tui.screens.ignored import IgnoredScreen
from tui.screens.main import MainScreen
from tui.screens.menu import Menu
from tui.widgets.bytes_pane import BytesPane

JAVA, LIBRDKAFKA = (str(PCAPS / f"compare-{name}.pcapng") for name in ("java-1", "librdkafka-1"))
AGAIN = str(PCAPS / "compare-java-2.pcapng")
SIZES = [(60, 20), (80, 24), (120, 40), (200, 60)]


class Screen:
    """The screen in a test's words."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot

    @property
    def diff(self) -> DiffScreen:
        screen = self.pilot.app.screen
        assert isinstance(screen, DiffScreen)
        return screen

    @property
    def model(self) -> DiffModel:
        assert self.diff.model is not None
        return self.diff.model

    @property
    def rows(self) -> tuple[int | None, int | None]:
        pair = self.model.pair
        return (None, None) if pair is None else (pair.a, pair.b)

    @property
    def path(self) -> str:
        return self.model.lines[self.model.line].path

    @property
    def sides(self) -> list[Model]:
        return list(self.model.sides)

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        await self.pilot.app.workers.wait_for_complete()
        await self.pilot.pause()
        await self.pilot.pause()

    def text(self, selector: str) -> str:
        return str(self.pilot.app.screen.query_one(selector, Static).render())

    def lines(self) -> str:
        """All that is drawn, as text."""
        compositor = self.pilot.app.screen._compositor
        return "\n".join("".join(s.text for s in strip) for strip in compositor.render_strips())

    def said(self) -> list[str]:
        return [note.message for note in self.pilot.app._notifications]


@asynccontextmanager
async def opened(a: str = JAVA, b: str = LIBRDKAFKA, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Screen]:
    with Capture([a]) as one, Capture([b]) as other:
        sides = [Side(capture, Path(capture.names[0]).stem) for capture in (one, other)]
        app = KDissectApp(DiffScreen(sides[0], sides[1]))
        async with app.run_test(size=size) as pilot:
            screen = Screen(pilot)
            await pilot.pause()
            await screen.settle()
            yield screen


async def to_cause(screen: Screen, api: str, path: str) -> None:
    """Put the cursor on a cause."""
    entries = screen.model.comparison.entries
    screen.diff.causes.cursor = next(n for n, e in enumerate(entries) if (e.api, e.path) == (api, path))
    await screen.settle()


async def to_pair(screen: Screen, api: str, verdict: Verdict) -> None:
    """Go to the first pair of an API with a verdict, in the list of pairs."""
    if not screen.diff.shows_pairs:
        await screen.press("v")
    model = screen.model
    for position, place in enumerate(model.shown):
        pair = model.comparison.pairs[place]
        row = (0, pair.a) if pair.a is not None else (1, pair.b)
        if pair.verdict is verdict and row[1] is not None and model.api(row[0], row[1]) == api:
            screen.diff.pairs.cursor = position
            await screen.settle()
            return
    raise AssertionError(f"no pair of {api} is {verdict}")


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_at_every_size_with_causes_fields_and_what_came_of_it(size: tuple[int, int]) -> None:
    async with opened(size=size) as screen:
        drawn = screen.lines()
        count = len(screen.model.comparison.entries)
        assert count > 20
        assert f"{count} {'≠' if size[0] < 70 else 'differences'}" in drawn
        for words in ("A compare-java", "⇄", "B compare-libr", "allow_auto", "true", "Help", "Its pairs"):
            assert words in drawn, words
        assert ("A · request 0x" in drawn) is (size[0] >= 70)


@pytest.mark.parametrize("theme", ["kdissect", "kdissect-light", "kdissect-colour-blind", "textual-light", "nord"])
async def test_it_draws_in_every_theme(theme: str) -> None:
    async with opened() as screen:
        screen.pilot.app.theme = theme
        await screen.press("v")
        assert "≠" in screen.lines()


async def test_v_goes_from_causes_to_pairs_and_back() -> None:
    async with opened() as screen:
        assert not screen.diff.shows_pairs
        await screen.press("v")
        assert screen.diff.shows_pairs
        assert screen.diff.focused is screen.diff.pairs
        assert "verdict" in screen.lines()
        await screen.press("v")
        assert screen.diff.focused is screen.diff.causes


async def test_pairs_say_what_they_are() -> None:
    async with opened(size=(120, 60)) as screen:
        await screen.press("v")
        drawn = screen.lines()
        for words in ("version, 3 fields", "only in A", "only in B", "more of the same", "same here", "1 field"):
            assert words in drawn, words


async def test_a_cause_shows_the_first_pair_that_has_it_with_its_field_in_both_bytes() -> None:
    async with opened() as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        assert screen.path == "isolation_level"
        for side in screen.sides:
            assert side.node is not None
            assert side.node.path == "body.isolation_level"
            assert side.levels()[-1] == (side.node.start, side.node.end, 0)
        assert "set by isolation.level" in screen.text("#inspector").replace("(", " ")


async def test_a_cause_that_no_pair_can_show_leaves_the_fields_empty() -> None:
    async with opened(b=str(PCAPS / "java-kip848.pcapng")) as screen:
        await to_cause(screen, "", "connections")
        assert screen.rows == (None, None)
        assert screen.diff.differences.border_title == "no pair shows it"
        await screen.press("enter")
        assert not screen.diff.shows_pairs
        assert "no pair shows it" in screen.said()
        assert screen.model.cause is None


async def test_every_other_cause_leads_to_a_pair_of_its_api() -> None:
    captures = (str(PCAPS / f"compare-{name}.pcapng") for name in ("aiokafka-1", "kafka-python-1"))
    async with opened(*captures) as screen:
        for number, entry in enumerate(screen.model.comparison.entries):
            if entry.api:
                screen.diff.causes.cursor = number
                await screen.press("enter")
                assert screen.diff.shows_pairs, entry
                apis = [screen.model.api(n, row) for n, row in enumerate(screen.rows) if row is not None]
                assert set(apis) == {entry.api}
                await screen.press("escape")
                assert not screen.diff.shows_pairs


async def test_enter_goes_from_a_cause_to_its_pairs_n_along_them_and_esc_back() -> None:
    async with opened() as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        await screen.press("enter")
        assert screen.diff.shows_pairs
        visited = [screen.rows]
        for _ in range(3):
            await screen.press("n")
            visited.append(screen.rows)
            assert screen.path == "isolation_level"
        assert len(set(visited)) == 4
        assert all(a is not None and screen.model.api(0, a) == "Fetch" for a, _ in visited)
        await screen.press("N")
        assert screen.rows == visited[2]
        await screen.press("escape")
        assert not screen.diff.shows_pairs
        assert screen.model.cause is None


async def test_n_goes_over_the_fields_of_a_pair_and_then_to_the_next_pair_that_differs() -> None:
    async with opened() as screen:
        await screen.press("v")
        seen = []
        for _ in range(7):
            seen.append((screen.rows, screen.path))
            await screen.press("n")
        assert [path for _, path in seen[:4]] == [
            "version", "client_software_name", "client_software_version", "supported_features",
        ]  # fmt: skip
        assert len({rows for rows, _ in seen[:4]}) == 1
        assert seen[4][0] == (2, None), "the pair of Metadata that shows nothing is passed over"
        assert seen[5][0] == (3, 2)
        for rows, path in reversed(seen):
            await screen.press("N")
            assert (screen.rows, screen.path) == (rows, path)
        await screen.press("N")
        assert "no earlier pair differs" in screen.said()


async def test_a_pair_that_one_side_alone_has_shows_its_fields() -> None:
    async with opened() as screen:
        await to_pair(screen, "InitProducerId", Verdict.ONLY_A)
        drawn = screen.lines()
        assert "transaction_timeout_ms" in drawn
        assert "nothing there" in drawn
        assert screen.sides[1].source is None


async def test_equals_hides_equal_pairs_and_brings_them_back() -> None:
    async with opened() as screen:
        await to_pair(screen, "Produce", Verdict.DIFFERENT)
        rows, count = screen.rows, screen.diff.pairs.count
        await screen.press("equals_sign")
        assert 0 < screen.diff.pairs.count < count
        assert screen.rows == rows
        verdicts = [screen.model.comparison.pairs[place] for place in screen.model.shown]
        assert not any(screen.model.is_equal(pair) for pair in verdicts)
        await screen.press("equals_sign")
        assert screen.diff.pairs.count == count


async def test_equals_in_the_fields_shows_all_of_them_and_says_what_is_ignored() -> None:
    async with opened(size=(120, 60)) as screen:
        await to_pair(screen, "OffsetFetch", Verdict.SAME)
        assert "nothing differs" in screen.lines()
        await to_pair(screen, "Fetch", Verdict.DIFFERENT)
        screen.diff.differences.focus()
        few = screen.diff.differences.count
        await screen.press("equals_sign")
        assert screen.diff.differences.count > few
        drawn = screen.lines()
        assert "max_wait_ms" in drawn
        assert "500" in drawn
        await screen.press("equals_sign")
        assert screen.diff.differences.count == few


async def test_moving_in_the_fields_lights_up_the_bytes_of_both_sides() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", Verdict.DIFFERENT)
        screen.diff.differences.focus()
        await screen.press("down")
        values = [side.node.value if side.node is not None else None for side in screen.sides]
        assert values == ["apache-kafka-java", "confluent-kafka-python"]
        assert "client_software_name" in screen.text("#inspector")


async def test_r_shows_the_other_message_on_both_sides() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", Verdict.DIFFERENT)
        await screen.press("r")
        assert [side.side for side in screen.sides] == ["response", "response"]
        assert screen.path == "supported_features"
        await screen.press("r")
        assert [side.side for side in screen.sides] == ["request", "request"]


async def test_a_byte_leads_to_its_field_by_key_and_by_click() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", Verdict.DIFFERENT)
        pane = screen.diff.query_one("#bytes-b", BytesPane)
        node = screen.sides[1].look.message.tree.find("body.client_software_version")
        assert node is not None
        pane.focus()
        pane.action_go(node.start + 1)
        await screen.settle()
        assert screen.path == "client_software_version"
        name = screen.sides[0].look.message.tree.find("body.client_software_name")
        assert name is not None
        left = screen.diff.query_one("#bytes-a", BytesPane)
        line, column = divmod(name.start + 1, left.per_line)
        await screen.pilot.click("#bytes-a", offset=(6 + column * 3, 1 + line))
        await screen.settle()
        assert screen.path == "client_software_name"


async def test_s_swaps_the_sides() -> None:
    async with opened() as screen:
        before = screen.model.comparison
        await screen.press("s")
        after = screen.model.comparison
        assert (after.a.label, after.b.label) == (before.b.label, before.a.label)
        assert len(after.entries) == len(before.entries)
        assert screen.lines().startswith(" A compare-librdkafka-1")


async def test_space_matches_two_rows_by_hand_and_takes_it_back() -> None:
    async with opened() as screen:
        await to_pair(screen, "Metadata", Verdict.DIFFERENT)
        a = screen.rows[0]
        assert a is not None
        await screen.press("space")
        assert "◆" in screen.lines()
        await to_pair(screen, "Metadata", Verdict.ONLY_B)
        b = screen.rows[1]
        await screen.press("space")
        assert screen.diff.matched == ((a, b),)
        place = screen.model.place_of(0, a)
        assert place is not None
        pair = screen.model.comparison.pairs[place]
        assert (pair.a, pair.b, pair.verdict) == (a, b, Verdict.DIFFERENT)
        assert "by hand" in screen.lines()
        assert any(each.path == "topics" for each in screen.model.comparison.differences(pair))
        screen.diff.pairs.cursor = screen.model.shown.index(place)
        await screen.press("space")
        assert screen.diff.matched == ()
        assert "by hand" not in screen.lines()


async def test_exchanges_of_two_apis_are_not_matched_and_esc_lifts_the_mark() -> None:
    async with opened() as screen:
        await to_pair(screen, "InitProducerId", Verdict.ONLY_A)
        await screen.press("space")
        await to_pair(screen, "Metadata", Verdict.ONLY_B)
        await screen.press("space")
        assert "exchanges of two APIs have nothing to compare" in screen.said()
        assert screen.diff.matched == ()
        await screen.press("escape")
        assert screen.diff.pairs.marked is None
        assert screen.diff.is_current


async def test_i_tells_what_is_ignored() -> None:
    async with opened() as screen:
        await screen.press("i")
        assert isinstance(screen.pilot.app.screen, IgnoredScreen)
        drawn = screen.lines()
        assert "correlation ids" in drawn
        assert "topic #1 is java-orders-1 in A" in drawn
        await screen.press("escape")
        assert screen.diff.is_current


async def test_y_copies_what_the_cursor_is_on() -> None:
    async with opened() as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        await screen.press("y")
        copied = screen.pilot.app.clipboard
        assert copied.startswith("Fetch request.isolation_level: 0 READ_UNCOMMITTED against 1 READ_COMMITTED")
        await to_pair(screen, "ApiVersions", Verdict.DIFFERENT)
        await screen.press("y")
        assert screen.pilot.app.clipboard == "A 1 ApiVersions v4 ⇄ B 1 ApiVersions v3: version, 3 fields"
        screen.diff.differences.focus()
        await screen.press("down", "y")
        copied = screen.pilot.app.clipboard
        assert copied == 'request.client_software_name: "apache-kafka-java" against "confluent-kafka-python" (value)'


@pytest.mark.parametrize(
    ("number", "ending", "begins"),
    [(0, "txt", "41"), (1, "md", "# "), (2, "html", "<!DOCTYPE"), (3, "json", '{"kind":"comparison"')],
)
async def test_x_writes_the_report(
    number: int, ending: str, begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened() as screen:
        for told in ("wrote", "not written"):  # what is there is not written over
            await screen.press("x")
            assert isinstance(screen.pilot.app.screen, Menu)
            await screen.press(*["down"] * number, "enter")
            assert any(words.startswith(told) for words in screen.said())
        count = len(screen.model.comparison.entries)
    [written] = tmp_path.iterdir()
    assert written.name == f"diff-compare-java-1-compare-librdkafka-1.{ending}"
    text = written.read_text().lstrip()
    assert text.startswith(begins.replace("41", str(count)))
    assert "isolation" in text


async def test_o_opens_the_exchange_of_a_and_capital_o_that_of_b_and_q_comes_back() -> None:
    async with opened() as screen:
        await to_pair(screen, "Fetch", Verdict.DIFFERENT)
        for key, row in zip(("o", "O"), screen.rows, strict=True):
            await screen.press(key)
            main = screen.pilot.app.screen
            assert isinstance(main, Aside)
            assert main.number == row
            assert main.model.side == "request"
            await screen.press("q")
            assert screen.diff.is_current
        await to_pair(screen, "Metadata", Verdict.ONLY_B)
        await screen.press("o")
        assert screen.diff.is_current
        assert "A has no exchange there" in screen.said()


async def test_b_hides_the_bytes_and_brings_them_where_there_is_little_room() -> None:
    async with opened() as screen:
        await screen.press("b")
        assert "0000" not in screen.lines()
        await screen.press("b")
        assert "0000" in screen.lines() or screen.diff.query_one("#both").display
    async with opened(size=(60, 20)) as screen:
        await to_cause(screen, "ApiVersions", "client_software_name")
        await screen.press("b")
        assert "0000" in screen.lines() or "00" in screen.lines()
        assert screen.diff.query_one("#both").display


async def test_borders_of_the_bytes_are_dragged_and_two_clicks_bring_them_back() -> None:
    async with opened() as screen:
        left, right = screen.diff.panes
        before = left.region
        await screen.pilot.mouse_down("#bytes-b", offset=(0, 3))
        await screen.pilot.hover("#bytes-a", offset=(40, 3))
        await screen.pilot.mouse_up("#bytes-a", offset=(40, 3))
        await screen.settle()
        assert left.region.width == 40
        assert right.region.width == 80
        await screen.pilot.mouse_down("#bytes-a", offset=(20, 0))
        await screen.pilot.hover("#differences", offset=(20, 5))
        await screen.pilot.mouse_up("#differences", offset=(20, 5))
        await screen.settle()
        assert left.region.height > before.height
        await screen.pilot.click("#bytes-a", offset=(20, 0), times=2)
        await screen.pilot.click("#bytes-b", offset=(0, 3), times=2)
        await screen.settle()
        assert left.region == before


async def test_tab_goes_round_the_panes() -> None:
    async with opened() as screen:
        diff = screen.diff
        wanted = [diff.differences, *diff.panes, diff.causes]
        for pane in wanted:
            await screen.press("tab")
            assert diff.focused is pane
        await screen.press("shift+tab")
        assert diff.focused is diff.panes[1]


async def test_keys_move_in_the_lists() -> None:
    async with opened() as screen:
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


async def test_a_click_chooses_a_line_and_two_open_it() -> None:
    async with opened() as screen:
        await screen.pilot.click("#causes", offset=(10, 3))
        await screen.settle()
        assert screen.diff.causes.cursor == 2
        await screen.pilot.click("#causes", offset=(10, 3), times=2)
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


async def test_help_shows_the_keys_of_this_screen() -> None:
    async with opened(size=(120, 60)) as screen:
        await screen.press("question_mark")
        assert isinstance(screen.pilot.app.screen, HelpScreen)
        drawn = screen.lines()
        for words in ("What is not taken for a difference", "A becomes B", "The next field that differs"):
            assert words in drawn, words


async def test_the_same_program_twice_is_the_same() -> None:
    async with opened(JAVA, AGAIN) as screen:
        assert "the same · " in screen.text("#title")
        assert screen.diff.shows_pairs
        await screen.press("n")
        assert any(words.startswith("no more pair differs") for words in screen.said()) or screen.rows != (None, None)


async def test_without_colours_cursor_and_signs_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened() as screen:
        strips = screen.diff._compositor.render_strips()
        chosen = next(strip for strip in strips if strip.text.startswith("▸"))
        assert any(segment.style is not None and segment.style.reverse for segment in chosen)
        assert "≠" in screen.lines()
        assert "−" in screen.lines()
        assert "+ " in screen.lines()


async def test_a_side_without_kafka_is_said(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    async with opened(JAVA, str(empty)) as screen:
        assert "B is empty: no request of Kafka's in it" in screen.lines()


async def test_words_from_the_wire_stay_words(tmp_path: Path) -> None:
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


async def test_q_leaves_while_it_is_compared_and_stops_that() -> None:
    with Capture([JAVA]) as one, Capture([LIBRDKAFKA]) as other:
        app = KDissectApp(MainScreen(one))
        async with app.run_test(size=(120, 40)) as pilot:
            await app.workers.wait_for_complete()
            screen = DiffScreen(Side(one, "a"), Side(other, "b"))
            await app.push_screen(screen)
            await pilot.press("q")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert isinstance(app.screen, MainScreen)


async def test_d_on_the_main_screen_asks_for_a_capture_and_compares(tmp_path: Path) -> None:
    for name in (JAVA, LIBRDKAFKA):
        (tmp_path / Path(name).name).symlink_to(name)
    here = str(tmp_path / Path(JAVA).name)
    with Capture([here]) as capture:
        app = KDissectApp(MainScreen(capture))
        async with app.run_test(size=(120, 40)) as pilot:
            screen = Screen(pilot)
            await screen.settle()
            await screen.press("d")
            assert isinstance(app.screen, AskCapture)
            await screen.press("escape")
            assert isinstance(app.screen, MainScreen)
            await screen.press("d", "down")
            assert isinstance(app.screen.focused, OptionList)
            await screen.press("enter")
            assert screen.diff.comparison is not None
            assert screen.diff.comparison.b.label == "compare-librdkafka-1"
            await screen.press("escape")
            assert isinstance(app.screen, MainScreen)
            await screen.press("d")
            app.screen.query_one(Input).value = str(tmp_path / "missing.pcap")
            await screen.press("enter")
            assert isinstance(app.screen, MainScreen)
            assert any("missing.pcap" in words for words in screen.said())
            await screen.press("d")
            app.screen.query_one(Input).value = LIBRDKAFKA
            await screen.press("enter")
            assert screen.diff.comparison is not None


async def test_a_hundred_thousand_pairs_cost_no_more_than_what_is_seen() -> None:
    async with opened() as screen:
        comparison = screen.model.comparison
        many = replace(comparison, pairs=comparison.pairs * 2_500)
        captures = [end.capture for end in screen.diff.ends]
        model = DiffModel(many, captures[0], captures[1])
        assert len(model.shown) > 100_000
        screen.diff._compared(model)
        await screen.press("v", "G", "pageup", "pageup")
        assert screen.diff.pairs.cursor > 100_000
        looked = model.differing.cache_info()
        assert looked.hits + looked.misses < 500
