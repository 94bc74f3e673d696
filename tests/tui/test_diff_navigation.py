"""Navigation on the diff screen: causes, pairs, fields."""

import pytest

from dissector.analysis.diff import PairVerdict
from tests.conftest import PCAPS, some_of
from tests.tui.diff_driver import opened, to_cause, to_pair


@pytest.mark.long
async def test_a_cause_shows_the_first_pair_that_has_it_with_its_field_in_both_bytes() -> None:
    async with opened() as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        assert screen.path == "isolation_level"
        for side in screen.sides:
            assert side.node is not None
            assert side.node.path == "body.isolation_level"
            assert side.levels()[-1] == (side.node.start, side.node.end, 0)
        assert "set by isolation.level" in " ".join(screen.text("#inspector").split())


@pytest.mark.exhaustive
async def test_a_cause_that_no_pair_can_show_leaves_the_fields_empty() -> None:
    async with opened(b=str(PCAPS / "java-kip848.pcapng")) as screen:
        await to_cause(screen, "", "connections")
        assert screen.rows == (None, None)
        assert screen.diff.differences.border_title == "no pair shows it"
        await screen.press("enter")
        assert not screen.diff.shows_pairs
        assert "no pair shows it" in screen.notifications()
        assert screen.model.cause is None


@pytest.mark.long
@pytest.mark.parametrize("step", some_of([1, 4], 4))
async def test_a_cause_of_every_api_leads_to_a_pair_of_it(step: int) -> None:
    """Each, or in `make test` the first and some of the others."""
    captures = (str(PCAPS / f"compare-{name}.pcapng") for name in ("aiokafka-1", "kafka-python-1"))
    async with opened(*captures) as screen:
        causes = {entry.api: number for number, entry in enumerate(screen.model.comparison.entries) if entry.api}
        assert len(causes) > 3
        for api, number in [*causes.items()][::step]:
            screen.diff.causes.cursor = number
            await screen.press("enter")
            assert screen.diff.shows_pairs, api
            apis = [screen.model.api(n, row) for n, row in enumerate(screen.rows) if row is not None]
            assert set(apis) == {api}
            await screen.press("escape")
            assert not screen.diff.shows_pairs


@pytest.mark.long
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


@pytest.mark.exhaustive
async def test_n_goes_through_the_fields_of_a_pair_and_then_to_the_next_pair_that_differs() -> None:
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
        assert seen[4][0] == (2, None), "the pair of Metadata that shows nothing is skipped"
        assert seen[5][0] == (3, 2)
        for rows, path in reversed(seen):
            await screen.press("N")
            assert (screen.rows, screen.path) == (rows, path)
        await screen.press("N")
        assert "no earlier pair differs" in screen.notifications()


@pytest.mark.exhaustive
async def test_a_pair_without_a_counterpart_shows_its_fields() -> None:
    async with opened() as screen:
        await to_pair(screen, "InitProducerId", PairVerdict.ONLY_A)
        drawn = screen.lines()
        assert "transaction_timeout_ms" in drawn
        assert "· none" in drawn
        assert screen.sides[1].source is None


@pytest.mark.exhaustive
async def test_equals_hides_equal_pairs_and_brings_them_back() -> None:
    async with opened() as screen:
        await to_pair(screen, "Produce", PairVerdict.DIFFERENT)
        rows, count = screen.rows, screen.diff.pairs.count
        await screen.press("equals_sign")
        assert 0 < screen.diff.pairs.count < count
        assert screen.rows == rows
        verdicts = [screen.model.comparison.pairs[place] for place in screen.model.shown]
        assert not any(screen.model.is_equal(pair) for pair in verdicts)
        await screen.press("equals_sign")
        assert screen.diff.pairs.count == count


@pytest.mark.exhaustive
async def test_equals_in_the_fields_shows_all_fields_and_again_only_differences() -> None:
    async with opened(size=(120, 60)) as screen:
        await to_pair(screen, "OffsetFetch", PairVerdict.SAME)
        assert "no differences" in screen.lines()
        await to_pair(screen, "Fetch", PairVerdict.DIFFERENT)
        screen.diff.differences.focus()
        few = screen.diff.differences.count
        await screen.press("equals_sign")
        assert screen.diff.differences.count > few
        drawn = screen.lines()
        assert "max_wait_ms" in drawn
        assert "500" in drawn
        await screen.press("equals_sign")
        assert screen.diff.differences.count == few


@pytest.mark.exhaustive
async def test_r_shows_the_other_message_on_both_sides() -> None:
    async with opened() as screen:
        await to_pair(screen, "ApiVersions", PairVerdict.DIFFERENT)
        await screen.press("r")
        assert [side.side for side in screen.sides] == ["response", "response"]
        assert screen.path == "supported_features"
        await screen.press("r")
        assert [side.side for side in screen.sides] == ["request", "request"]


@pytest.mark.exhaustive
async def test_all_words_of_a_cause_are_drawn_on_a_small_terminal() -> None:
    async with opened(size=(80, 24)) as screen:
        await to_cause(screen, "Fetch", "isolation_level")
        drawn = " ".join(screen.lines().split())
        for words in ("A has the schema's default", "set by isolation.level (Java), isolation.level (librdkafka)"):
            assert words in drawn, words
