"""Parts of a capture give what the whole gives: however many parts, wherever ranges end, whatever files it was cut in.

What `show` prints of the same files is the truth.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture_session import Capture
from dissector.pipeline.file_scan import RANGE_PACKETS
from tests.conftest import CAPTURES, PCAPS, QUICK, VARIED, costly, some_bundled, some_of
from tests.networks import HARMLESS, LOSSES, one_file, traffic, write_pcap
from tests.pipeline.rolling import rolled
from tests.pipeline.without_spark import differences, problems, shown, shown_by_tables, tables
from tests.traffic import Mangling, seeds
from tests.transport.wrapping import TUNNELS, fragments
from tests.transport.wrapping import ethernet as framed

ALL = tuple(path.stem for path in CAPTURES)
MANGLED: dict[str, Mangling] = HARMLESS | {f"lost: {name}": mangle for name, (mangle, _) in LOSSES.items()}
TUNNELED = [("vxlan",), ("vxlan", "gre"), ("geneve", "vxlan over ipv6")]
STANDING = ("nothing", "all at once", "lost: several")
"""Networks that stand for all in `make test`."""
networks = pytest.mark.parametrize(
    "mangle",
    [pytest.param(mangle, marks=() if name in STANDING else pytest.mark.exhaustive, id=name)
     for name, mangle in MANGLED.items()],
)  # fmt: skip
"""The others are run by `make exhaustive`."""
FEW = costly(1)
"""The first is the simplest one there is, with three parts; there are many captures, and other ways each time."""
dealt = st.fixed_dictionaries(
    {
        "parts": st.sampled_from([3, 1, 2, 4, 5, 6, 7]), "size": st.sampled_from([4_000, 40_000, 1 << 30]),
        "most": st.sampled_from([RANGE_PACKETS, 10, 50]), "seed": st.integers(0, 9),
    }
)  # fmt: skip


def assert_shown(files: list[Path], **how: Any) -> None:
    """The tables of files are what `show` has of them."""
    expected, made = shown(files), tables(files, **how)
    found = shown_by_tables(made)
    assert expected.total() > 0
    assert found == expected, "\n".join(differences(expected, found))
    assert Counter(gaps(expected)) == Counter(
        (each["kind"], each["client"], each["time_ns"], each["direction"], each["size"]) for each in made["gaps"]
    )
    with Capture([str(file) for file in files]) as capture:
        for _ in capture.read():
            pass
        assert problems(made) == [each for each in capture.problems if each not in capture.pipeline.tally.file_problems]


def gaps(lines: Counter[str]) -> Iterator[tuple[object, ...]]:
    for line in lines.elements():
        made = json.loads(line)
        if made["kind"] in ("gap", "unparsed"):
            yield made["kind"], made["client"], made["time_ns"], made["direction"], made["size"]


@pytest.mark.long
@pytest.mark.slow
@given(how=dealt)
@FEW
@some_bundled
def test_parts_of_a_bundled_capture_are_what_show_prints(bundled: Path, how: dict[str, Any]) -> None:
    assert_shown([bundled], **how)


@pytest.mark.long
@pytest.mark.slow
@given(how=dealt)
@FEW
@pytest.mark.parametrize("name", some_of(QUICK, "java-sasl-plain", "compare-librdkafka-1"))
def test_every_table_is_the_same_for_any_number_of_parts(name: str, how: dict[str, Any]) -> None:
    files = [PCAPS / f"{name}.pcapng"]
    one, many = tables(files), tables(files, **how)
    assert one.keys() == many.keys() >= {"connections", "exchanges", "records"}
    for table in one.keys() - {"tallies", "plans"}:
        assert Counter(map(repr, one[table])) == Counter(map(repr, many[table]))


@pytest.mark.long
@pytest.mark.slow
@given(how=dealt)
@FEW
@networks
def test_parts_of_a_bad_network_are_what_show_prints(tmp_path: Path, mangle: Mangling, how: dict[str, Any]) -> None:
    assert_shown(one_file(tmp_path, mangle(traffic().packets)), **how)


@pytest.mark.long
@pytest.mark.slow
@given(how=dealt)
@FEW
@pytest.mark.parametrize("lost", some_of([None, 30, 40], None, 30))
def test_fragments_belong_to_one_part(tmp_path: Path, lost: int | None, how: dict[str, Any]) -> None:
    """All parts get them; what they become has one row."""
    chance = random.Random(3)
    found: list[bytes] = []
    for number, packet in enumerate(traffic().packets):
        cut = fragments(packet.ip(), number, 24)
        chance.shuffle(cut)
        found += cut[number == lost :]
    file = write_pcap(tmp_path, "made", map(framed, found))
    assert_shown([file], **how)
    left = [each.code for each in problems(tables([file], **how))]
    assert left == ([] if lost is None else ["packets-skipped"])


@pytest.mark.slow
@given(how=dealt)
@FEW
@pytest.mark.parametrize("tunnels", some_of(TUNNELED, *TUNNELED[1:]))
def test_tunnels_are_dealt_by_what_is_in_them(tmp_path: Path, tunnels: tuple[str, ...], how: dict[str, Any]) -> None:
    found = [packet.ip() for packet in traffic().packets]
    for tunnel in tunnels:
        found = [TUNNELS[tunnel](packet) for packet in found]
    assert_shown([write_pcap(tmp_path, "made", map(framed, found))], **how)


def assert_rolled(folder: Path, file: Path, chance: random.Random, how: dict[str, Any]) -> None:
    """A capture cut into files, in any order, is what the whole is."""
    files = rolled(folder, file, chance)
    chance.shuffle(files)
    expected, found = shown([file]), shown_by_tables(tables(files, **how))
    assert found == expected, "\n".join(differences(expected, found))
    for each in files:
        each.unlink()


@pytest.mark.long
@pytest.mark.slow
@given(chance=seeds, how=dealt)
@FEW
@some_bundled
def test_a_ring_of_files_is_what_the_capture_was(
    tmp_path: Path, bundled: Path, chance: random.Random, how: dict[str, Any]
) -> None:
    assert_rolled(tmp_path, bundled, chance, how)


@pytest.mark.long
@pytest.mark.slow
@given(chance=seeds, how=dealt)
@FEW
@networks
def test_a_ring_of_a_bad_network_is_what_the_capture_was(
    tmp_path: Path, mangle: Mangling, chance: random.Random, how: dict[str, Any]
) -> None:
    [file] = one_file(tmp_path, mangle(traffic().packets))
    assert_rolled(tmp_path, file, chance, how)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("names", [VARIED, pytest.param(ALL, marks=pytest.mark.exhaustive)], ids=["varied", "all"])
def test_bundled_captures_together_are_what_show_prints_of_them(names: tuple[str, ...]) -> None:
    """One capture of many files: what one teaches, all know."""
    assert_shown([PCAPS / f"{name}.pcapng" for name in names], parts=5, size=50_000, most=100)
