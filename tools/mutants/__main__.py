"""Puts mistakes into a package and says which of them its tests don't notice: ``python -m tools.mutants transport``."""

import argparse
import random
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tools.mutants.mutations import Mutant, mutants
from tools.mutants.running import MutantRuns

ROOT: Final = Path(__file__).parents[2]
EQUIVALENT: Final = Path(__file__).parent / "equivalent.toml"
MASKING: Final = (
    "tests/protocol/test_masking.py", "tests/protocol/test_masked_headers.py",
    "tests/protocol/test_masking_without_secrets.py", "tests/protocol/test_bulk_masking.py",
)  # fmt: skip
TESTS: Final = {"protocol/masking": MASKING, "protocol/bulk_masking": MASKING}
"""The tests of what has no folder of tests."""


class Equivalents:
    """Mutants that make no difference that a test could see."""

    def __init__(self) -> None:
        self._entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["equivalent"]

    def has(self, mutant: Mutant) -> bool:
        """Whether a mutant is one of them: its file and line are, and if there are `mutants` it is one of these."""
        return any(
            entry["line"] == mutant.before
            and entry["file"] == mutant.path.as_posix()
            and mutant.after in entry.get("mutants", [mutant.after])
            for entry in self._entries
        )

    def stale(self, package: str, made: list[Mutant]) -> list[str]:
        """Entries of a package whose line is gone, or has no such mutants."""
        there = {(mutant.path.as_posix(), mutant.before, after) for mutant in made for after in (mutant.after, "")}
        return [
            f"{entry['file']}: {entry['line']}"
            for entry in self._entries
            if f"dissector/{package}" in entry["file"]
            and not all((entry["file"], entry["line"], after) in there for after in entry.get("mutants", [""]))
        ]


def main() -> int:
    """Return 0 if each mutant is noticed or known to be equivalent."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("package", help="transport, protocol/records, or one file of it: transport/in_order")
    parser.add_argument("--count", type=int, default=0, help="so many of the mutants, chosen by --seed; else all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=5, help="of tests for each mutant, the quickest first")
    parser.add_argument("--slow", action="store_true", help="with the slow tests")
    parser.add_argument("--tests", nargs="*", help="instead of those of the package")
    args = parser.parse_args()
    source = Path("dissector", args.package)
    files = sorted(source.rglob("*.py")) if source.is_dir() else [source.with_suffix(".py")]
    made = [mutant for file in files for mutant in mutants(file)]
    equivalents = Equivalents()
    for entry in equivalents.stale(args.package, made):
        print(f"equivalent.toml names no mutant: {entry}")
    chosen = _chosen(made, args.count or len(made), args.seed)
    runs = MutantRuns([each for each in chosen if not equivalents.has(each)], files, args.seconds)
    tests = args.tests or TESTS.get(args.package) or [_tests_of(Path("tests", args.package))]
    marks = "not spark and not exhaustive" + ("" if args.slow else " and not slow and not long")
    plugins = ("xdist", "pytest_asyncio.plugin", "_hypothesis_pytestplugin", "no:cacheprovider", "no:faulthandler")
    options = ["--disable-plugin-autoload", *(word for plugin in plugins for word in ("-p", plugin)), "-m", marks]
    failed = pytest.main([*options, "--capture=no", *map(str, tests)], plugins=[runs])
    print(f"\n{args.package}: {len(made)} mutants, {len(chosen)} chosen,", end=" ")
    print(
        f"{sum(map(equivalents.has, chosen))} equivalent,", ", ".join(f"{n} {word}" for word, n in runs.count.items())
    )
    return bool(failed or runs.survivors)


def _chosen(made: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many mutants. A change of other code leaves most of them chosen."""
    ranks = {
        at: random.Random(f"{seed} {each.path} {each.before} {each.after}").random() for at, each in enumerate(made)
    }
    return [made[at] for at in sorted(sorted(ranks, key=ranks.__getitem__)[:count])]


def _tests_of(folder: Path) -> Path:
    return folder if folder.is_dir() else folder.parent


sys.exit(main())
