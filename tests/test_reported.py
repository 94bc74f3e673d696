"""What people reported has its cause on every face, and one event is one finding on all: text, tree, JSON, CSV, tables,
statistics, `check`, the screen, Python.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="NOT TESTED with tables: pyarrow is not installed")

import dissector
from tests.cases import cases
from tests.cli.test_commands import kdissect
from tests.conftest import CAPTURES, PCAPS, some_of
from tests.finding_faces import CAUSES, Tolds, assert_faces_agree
from tests.pasted.more_forms import LOGGED, MORE_FORMS
from tests.reported import CASES, NUMBERS, host, reported_capture
from tests.tui.main_driver import opened

FEW = ("java-advertised", "mtu")
"""Recordings that stand for all in `make test`."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    return reported_capture(tmp_path_factory.mktemp("reported"))


@pytest.fixture(scope="module")
def told(capture: str, tmp_path_factory: pytest.TempPathFactory) -> Tolds:
    """The findings of all cases, which are the same on all faces that count them."""
    return assert_faces_agree(capture, tmp_path_factory.mktemp("reported") / "tables")


def own(told: Tolds, name: str) -> Tolds:
    """Those of one case."""
    address = host(NUMBERS[name], 5)
    return Counter({each: count for each, count in told.items() if each.client.startswith(f"{address}:")})


@pytest.mark.long
@cases("name", CASES)
def test_each_has_its_findings_and_no_other(told: Tolds, name: str) -> None:
    case, found = CASES[name], own(told, name)
    assert Counter(each.code for each in found.elements()) == case.findings
    for words in case.words:
        assert any(words in each.message for each in found), found


def test_what_is_not_kafka_is_counted(capture: str) -> None:
    done = kdissect("show", capture)
    assert b"1 connection not shown, as it is not Kafka: FastCGI 1" in done.stderr
    with dissector.open(capture) as opened_capture:
        assert [each.code for each in opened_capture.problems] == ["non-kafka-connections"]
        assert not [each for each in opened_capture if each.server.endswith(":9000")]


@pytest.fixture(scope="module")
def trees(capture: str) -> dict[str, str]:
    """What the tree prints, by host of the client."""
    with dissector.open(capture) as opened_capture:
        hosts = [each.client.partition(":")[0] for each in opened_capture]
    texts = re.split(r"(?m)^(?= *\d+ )", kdissect("show", capture, "-f", "tree").stdout.decode())[1:]
    assert len(texts) == len(hosts)
    found = dict.fromkeys(hosts, "")
    for each, text in zip(hosts, texts, strict=True):
        found[each] += text
    return found


@pytest.mark.long
@cases("name", [name for name in CASES if CASES[name].findings])
def test_the_tree_says_it(trees: dict[str, str], told: Tolds, name: str) -> None:
    for each in own(told, name):
        assert each.message in trees[host(NUMBERS[name], 5)]


@pytest.mark.long
def test_the_rows_of_text_and_csv_say_it(capture: str) -> None:
    text = kdissect("show", capture).stdout.decode()
    table = kdissect("show", capture, "--fields", "client,info", "-f", "csv").stdout.decode()
    for name, case in CASES.items():
        mine = [line for line in table.splitlines() if line.startswith(f"{host(NUMBERS[name], 5)}:")]
        assert case.row in "\n".join(mine), name
        assert case.row in text, name


def test_check_names_the_rules_that_are_broken(capture: str) -> None:
    outcomes = json.loads(kdissect("check", capture, "-f", "json").stdout)["outcomes"]
    with dissector.open(capture) as opened_capture:
        clients = {each.number: each.client.partition(":")[0] for each in opened_capture}
    broken = {(each["rule"], clients[each["exchange"]]) for each in outcomes if each["status"] == "broken"}
    expected = {(case.rule, host(NUMBERS[name], 5)) for name, case in CASES.items() if case.rule is not None}
    assert broken == expected


@pytest.mark.long
async def test_the_screen_says_it(capture: str, told: Tolds) -> None:
    async with opened(capture, size=(240, 60)) as screen:
        exchanges = [screen.main.capture.exchange(row) for row in range(len(screen.main.capture))]
        for name, case in CASES.items():
            if not case.findings:
                continue
            messages = {each.message for each in own(told, name)}
            screen.list.cursor = next(
                row for row, each in enumerate(exchanges)
                if case.row in each.row.info and messages & {one.message for one in each.findings}
            )  # fmt: skip
            await screen.settle()
            assert case.row in screen.lines(), name
            assert any(message in screen.text("#inspector") for message in messages), name
        await screen.press("F")
        for code, count in Counter(each.code for each in told.elements()).items():
            [line] = [line for line in screen.lines().splitlines() if f" {code} " in line]
            assert str(count) in line.split()


@pytest.mark.long
def test_pasted_bytes_have_the_same_findings_on_all_faces(tmp_path: Path) -> None:
    """Those of a mistake that somebody pasted out of a log."""
    [wire] = CASES["response header v1"].build(1)
    request, response = (frame[54:] for _, frame in wire.packets[2:])
    path = tmp_path / "pasted.txt"
    path.write_text(LOGGED["JSON"]("\n\n".join(MORE_FORMS["wrapped numbers"](each) for each in (request, response))))
    told = assert_faces_agree(str(path), tmp_path / "tables")
    assert {each.code for each in told} == {"malformed", "reads-as"}
    assert b"response-malformed" in kdissect("check", str(path)).stdout


def recordings() -> Iterator[Path]:
    yield from CAPTURES
    for folder in CAUSES:
        yield from sorted(path for path in (PCAPS / folder).iterdir() if ".pcap" in path.name)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("path", some_of([*recordings()], *FEW))
def test_one_event_is_one_finding_on_all_faces(path: Path, tmp_path: Path) -> None:
    assert_faces_agree(str(path), tmp_path / "tables")
