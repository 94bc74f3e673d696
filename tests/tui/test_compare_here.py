"""Comparisons within one capture: of clients, of connections, of marked exchanges."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from textual.widgets import Input, OptionList

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.peers import PeerIndex
from dissector.analysis.diff.side import RowSide
from dissector.capture_session import Capture
from tests.conftest import PCAPS
from tests.findings.conversations import Talk, written
from tests.tui.main_driver import Screen, opened
from tui.app import KDissectApp
from tui.diff_labels import exact_result, shared
from tui.diff_model import DiffModel
from tui.diff_runner import compare
from tui.palette import Commands
from tui.screens.compare_dialog import ALONE, NOBODY, PeersDialog
from tui.screens.diff_screen import DiffScreen
from tui.screens.main_screen import DetailScreen, MainScreen

SEGMENT: Final = str(PCAPS / "segments/rdkafka-codecs-0/00000000000000000000.log")
TLS: Final = str(PCAPS / "tls/java-1.3.pcapng")
CLASSIC: Final = str(PCAPS / "java-classic.pcapng")
SIZES: Final = ((80, 24), (200, 60))


def diff(screen: Screen) -> DiffScreen:
    found = screen.pilot.app.screen
    assert isinstance(found, DiffScreen)
    return found


def sides(screen: Screen) -> list[set[int]]:
    """Return the rows that are compared, of A and of B."""
    comparison = diff(screen).comparison
    assert comparison is not None
    rows = [{pair[side] for pair in comparison.pairs} for side in (0, 1)]
    return [{row for row in each if isinstance(row, int)} for each in rows]


def clients(screen: Screen) -> list[set[object]]:
    capture = screen.main.capture
    return [{capture.exchange(row).row.client_id for row in each} for each in sides(screen)]


@pytest.mark.long
async def test_a_client_is_compared_with_another_one_and_escape_comes_back_to_the_row() -> None:
    mine, other = (f"consumer-java-classic-group-{n}" for n in (1, 2))
    async with opened(CLASSIC, size=SIZES[0]) as screen:
        main = screen.main
        main.filter.apply("conn == 7")  # it hides the other side
        await screen.settle()
        screen.list.cursor = 1
        await screen.press("p")
        dialog = screen.pilot.app.screen
        assert isinstance(dialog, PeersDialog)
        assert dialog.query_one(OptionList).option_count == 3 + 9
        for size in SIZES:
            await screen.resize(size)
            assert f"Compare {mine} with" in screen.lines()
            assert other in screen.lines()
        await screen.press("escape")
        assert (screen.pilot.app.screen, screen.row, screen.main.filter.text) == (main, 1, "conn == 7")
        await screen.press("p", "enter")
        assert clients(screen) == [{mine}, {other}]
        assert [end.label for end in diff(screen).ends] == [mine, other]
        for size in SIZES:
            await screen.resize(size)
            heading = screen.lines().splitlines()[0]
            assert "-1" in heading
            assert "-2" in heading
        # enter on a cause shows the pairs that have it, o the exchange of A among all exchanges
        await screen.press("enter")
        assert diff(screen).shows_pairs
        assert diff(screen).model is not None
        pair = diff(screen).pairs.pair
        assert pair is not None
        assert pair.a is not None
        await screen.press("o")
        detail = screen.pilot.app.screen
        assert isinstance(detail, DetailScreen)
        assert detail.number == pair.a
        await screen.press("q")
        # swapped, the same pair stays: both sides are of one capture
        await screen.press("s")
        assert clients(screen) == [{other}, {mine}]
        model = diff(screen).model
        assert model is not None
        assert model.pair is not None
        assert (model.pair.a, model.pair.b) == (pair.b, pair.a)
        await screen.press("escape")
        assert (screen.pilot.app.screen, screen.row, screen.main.filter.text) == (main, 1, "conn == 7")
        await screen.press("p")
        screen.pilot.app.screen.query_one(Input).value = "c5 "
        await screen.press("enter")
        assert [end.label for end in diff(screen).ends] == [f"C7 {mine}", f"C5 {mine}"]
        connections = [{screen.main.capture.rows.connection_of(row) for row in each} for each in sides(screen)]
        assert connections == [{7}, {5}]
        await screen.press("q")
        await screen.press("p")
        screen.pilot.app.screen.query_one(Input).value = "nobody of this name"
        await screen.press("enter")
        assert isinstance(screen.pilot.app.screen, PeersDialog)


@pytest.mark.exhaustive
async def test_two_marked_exchanges_are_shown_side_by_side_as_the_wire_has_them() -> None:
    async with opened(CLASSIC, size=SIZES[0]) as screen:
        main = screen.main
        await screen.press(*"20Gm", "j", "m", "g", "equals_sign")
        for size in SIZES:
            await screen.resize(size)
            drawn = screen.lines()
            assert "A 20 Fetch" in drawn
            assert "B 21 Fetch" in drawn
            assert "session_id" in drawn
        model = diff(screen).model
        assert model is not None
        assert sides(screen) == [{19}, {20}]
        assert diff(screen).focused is diff(screen).differences
        assert f"{len(model.lines)} fields differ" in screen.lines()
        assert not any(line.alike for line in model.lines)
        # n goes from one to the next, also to those that are no difference between clients
        seen = [model.line]
        for _ in model.lines[1:]:
            await screen.press("n")
            seen.append(model.line)
        assert seen == [*range(len(model.lines))]
        await screen.press("n", "N")
        assert model.line == len(model.lines) - 2
        unlike = len(model.lines)
        await screen.press("equals_sign")
        assert len(model.lines) > unlike == model.unlike
        assert f"{unlike} fields differ" in screen.lines()
        await screen.press("equals_sign", "g", "r")
        assert [side.side for side in model.sides] == ["response", "response"]
        # v shows what of it is a difference between clients
        await screen.press("v")
        assert diff(screen).focused is diff(screen).causes
        assert diff(screen).entry is not None
        await screen.press("v", "space")
        assert screen.notifications()[-1] == "these two are already matched"
        await screen.press("s")
        assert sides(screen) == [{20}, {19}]
        await screen.press("escape")
        assert screen.pilot.app.screen is main
        assert screen.row == 0
        # without a difference it says so: these two have the same bytes behind their headers
        main.appearance.marks.marked.clear()
        capture = main.capture
        same = [n for n in range(28, 32) if capture.exchange(n).row.api == "Fetch"]
        main.appearance.marks.marked.add(same[0])
        screen.list.cursor = same[1]  # one mark, and the row under the cursor
        await screen.press("equals_sign")
        assert sides(screen) == [{same[0]}, {same[1]}]
        model = diff(screen).model
        assert model is not None
        assert [line.path for line in model.lines] == ["session_epoch"]
        await screen.press("escape")


@pytest.fixture
def odd(tmp_path: Path) -> str:
    """A capture with a hostile client id, an unanswered request, and an orphan."""
    one, other = Talk(1, "\x1b]0;gone\x07[/b]‮"), Talk(2, "plain")
    for talk in (one, other):
        talk.ask(1, "Metadata", 1, {"topics": []}, {"brokers": [], "controller_id": 1, "topics": []})
    one.ask(5, "Metadata", 1, {"topics": [{"name": "\x1b[31mred"}]})
    return written(tmp_path, one, other)


@pytest.mark.exhaustive
async def test_what_cannot_be_compared_is_said_in_one_line(odd: str, tmp_path: Path) -> None:
    async with opened(CLASSIC) as screen:
        main, marks = screen.main, screen.main.appearance.marks.marked
        for rows, words in (
            ((), "mark an exchange (m)"),
            ((0,), "mark an exchange (m)"),  # the row under the cursor itself
            ((18, 19), "row 19 is ListOffsets, row 20 Fetch: only exchanges of one API can be compared"),
            ((19, 20, 28), "3 exchanges are marked: = compares two"),
            ((0, 10_000), "mark an exchange (m)"),  # what is no row
        ):
            marks.clear()
            marks.update(rows)
            await screen.press("equals_sign")
            assert screen.pilot.app.screen is main
            assert words in screen.notifications()[-1]
        marks.update((19, 20, 28))
        main.filter.apply("number in {20, 21}")  # of three marks those that the filter shows
        await screen.settle()
        await screen.press("equals_sign")
        assert sides(screen) == [{19}, {20}]
        await screen.press("escape", "escape")
        # both are found by their words
        await screen.press("ctrl+p", *"compare")
        front = screen.pilot.app.screen
        assert isinstance(front, Commands)
        await screen.until(lambda: "Compare marked (=)" in screen.lines() and "Compare client (p)" in screen.lines())
    async with opened(SEGMENT) as screen:
        await screen.press("p")
        assert screen.notifications()[-1] == "entries of Kafka's own files have no client"
        await screen.press("m", "j", "m", "equals_sign")
        assert "row 1 is no exchange" in screen.notifications()[-1]
    async with opened(TLS) as screen:
        await screen.press("p", "enter")
        assert all(sides(screen))
        await screen.press("escape")
    alone, silent = Talk(1, "alone"), Talk(2, "silent")
    empty = {"brokers": [], "controller_id": 1, "topics": []}
    alone.ask(1, "Metadata", 1, {"topics": []}, empty)
    (tmp_path / "few").mkdir()
    async with opened(written(tmp_path / "few", alone)) as screen:
        await screen.press("p")
        assert screen.notifications()[-1] == ALONE
        assert screen.pilot.app.screen is screen.main
    silent.ask(1, "Metadata", 1, {"topics": []}, empty)
    del silent.turns[0]  # its request was not captured
    silent.turns.append(silent.turns[0]._replace(time_ns=silent.turns[0].time_ns + 1))
    async with opened(written(tmp_path / "few", alone, silent)) as screen:
        orphan = next(n for n in range(len(screen.main.capture)) if screen.main.capture.exchange(n).request is None)
        screen.list.cursor = orphan
        await screen.press("p")
        assert screen.notifications()[-1] == NOBODY
        assert screen.pilot.app.screen is screen.main
        await screen.press("m", "g", "equals_sign")
        assert f"row {orphan + 1} is a response without its request" in screen.notifications()[-1]
    async with opened(odd) as screen:
        for keys in (("p", "enter"), ("j", "m", "j", "equals_sign")):
            await screen.press(*keys)
            drawn = screen.lines()
            assert isinstance(screen.pilot.app.screen, DiffScreen), drawn
            assert not {"\x1b", "\x07", "‮"} & set(drawn)
            await screen.press("escape")


@pytest.mark.long
async def test_the_client_that_the_user_names_reaches_the_comparison() -> None:
    with Capture([CLASSIC]) as capture:
        found = compare(
            DiffSide(capture, "a", client="librdkafka"), DiffSide(capture, "b"), (), (), lambda _: None, lambda: False
        )
        assert found.a.clients == ("librdkafka",)


@pytest.mark.long
async def test_the_screen_stays_free_while_it_reads_who_sent_what(monkeypatch: pytest.MonkeyPatch) -> None:
    """Escape closes the dialog while it reads, and what it found is dropped."""
    async with opened(CLASSIC) as screen:
        seen = []

        class Slow:
            def __init__(self, _capture: Capture, stop: int, watch: Callable[[int], None]) -> None:
                while True:
                    seen.append(stop)
                    watch(0)  # it raises once the dialog is closed

        monkeypatch.setattr("tui.screens.compare_dialog.PeerIndex", Slow)
        await screen.pilot.press("p")
        await screen.until(lambda: seen)
        await screen.pilot.press("escape")
        await screen.settle()
        assert isinstance(screen.pilot.app.screen, MainScreen)
        assert isinstance(screen.pilot.app, KDissectApp)


@pytest.mark.long
async def test_enter_that_comes_before_the_clients_are_read_takes_the_first_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened(CLASSIC) as screen:
        may_end = threading.Event()

        class Late(PeerIndex):
            def __init__(self, capture: Capture, stop: int, watch: Callable[[int], None]) -> None:
                may_end.wait(60)
                super().__init__(capture, stop, watch)

        monkeypatch.setattr("tui.screens.compare_dialog.PeerIndex", Late)
        await screen.pilot.press("p", *"producer", "enter")
        assert isinstance(screen.pilot.app.screen, PeersDialog)
        may_end.set()
        await screen.until(lambda: isinstance(screen.pilot.app.screen, DiffScreen))
        await screen.settle()
        assert clients(screen) == [{"adminclient-1"}, {"producer-1"}]


def test_names_that_begin_alike_are_told_by_their_ends() -> None:
    assert shared(["consumer-group-1", "consumer-group-2"], 20) == ["…r-group-1", "…r-group-2"]
    assert shared(["consumer-1", "producer-1"], 12) == ["consu…", "produ…"]
    assert shared(["same-name", "same-name"], 10) == ["same…", "same…"]


def exact_model(capture: Capture, a: int, b: int) -> DiffModel:
    """Compare two rows, from 0, as the screen does."""
    for _ in () if capture.is_read else capture.read():
        pass
    ends = [RowSide(capture, str(row), stop=len(capture), row=row) for row in (a, b)]
    found = compare(ends[0], ends[1], (), ((a, b),), lambda _: None, lambda: False)
    model = DiffModel(found, capture, capture, is_exact=True)
    model.choose(found.pairs[0])
    return model


def test_fields_beyond_those_that_are_listed_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with Capture([CLASSIC]) as capture:
        whole = exact_model(capture, 19, 20)
        assert whole.unlike == len(whole.lines) > 4
        monkeypatch.setattr("tui.diff_model.MOST_FIELDS", 3)
        few = exact_model(capture, 19, 20)
        assert len(few.lines) == 3
        assert few.unlike == whole.unlike
        assert not any(line.alike for line in few.lines)  # what is equal takes no place of what is not


def test_masked_secrets_are_not_said_to_be_equal() -> None:
    with Capture([str(PCAPS / "java-sasl-plain.pcapng")]) as capture:
        for _ in capture.read():
            pass
        logins = [n for n in range(len(capture)) if capture.exchange(n).row.api == "SaslAuthenticate"]
        assert exact_result(exact_model(capture, *logins[:2])).endswith(", except masked secrets")
        others = [n for n in range(len(capture)) if capture.exchange(n).row.api == "ApiVersions"]
        assert "masked" not in exact_result(exact_model(capture, *others[:2]))
