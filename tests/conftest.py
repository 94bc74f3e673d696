"""Shared by all tests: where the bundled captures are, no schemas but the shipped ones, no unexpected skip in CI."""

import atexit
import gc
import os
import sys
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.internal.conjecture import providers

from tests.byte_code import write_byte_code
from tests.needs import excused
from tools import instrumented_kernel  # noqa: F401  # used from here on, if `make sanitize` says so

PCAPS = Path(__file__).parents[1] / "pcaps"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each program that a test starts compiles all of our source again
sys.dont_write_bytecode = False  # as each worker would
os.environ["XDG_DATA_HOME"] = "/proc/nonexistent"  # what somebody imported on this machine is not part of a test
os.environ["XDG_CONFIG_HOME"] = "/proc/nonexistent"  # nor what they configured; not even root can make it
os.environ["XDG_CACHE_HOME"] = "/proc/nonexistent"  # nor is Spark's class archive written for it
os.environ["XDG_STATE_HOME"] = os.devnull  # and nothing of a test is remembered: no folder can be made there
gc.set_threshold(100_000, 20, 100)  # a test process has a million objects: to search them took a third of its CPU
CAPTURES = sorted(PCAPS.glob("*.pcapng"))
ENCRYPTED = sorted(PCAPS.glob("tls/*.pcapng"))
"""With TLS, and with the secrets of their connections."""
VARIED_TLS = ("java-1.2-resumed", "java-1.3", "librdkafka-1.3-key-update")
"""Those that differ most: a session resumed in the older version, the newer one, and one whose keys change."""
QUICK = ("java", "aiokafka", "java-sasl-plain", "compare-librdkafka-1")
"""Those that stand for all in `make check`. Of those with many requests in flight, this is not the largest:
`librdkafka-pipelined` has seven times as many exchanges."""
VARIED = (
    *QUICK, "librdkafka-acks0", "plain-socket-message-sets", "plain-socket-sasl-v0",
    "trouble-closed-in-flight", "trouble-duplicate-correlation-id", "trouble-near-loss",
)  # fmt: skip
"""Those that differ in what reading, cutting, filtering and writing depend on: losses, raw tokens, requests without a
response, requests in flight, old record formats. The others differ in APIs and versions: tests of
decoding ask for `every_capture`."""

LONGEST = (
    "tests/pipeline/test_ingest.py",
    "tests/test_hostile.py::test_live_output_is_harmless",
    "tests/test_hostile.py::test_a_comparison_on_the_screen_is_harmless",
    "tests/cli/test_live.py",
    "tests/cli/test_follow.py",
    "tests/tables/test_object_stores.py",
)
"""Beginnings of the names of tests that take longest, the first first: all of a module that shares a costly fixture."""

REPEATABLE = settings(  # the same examples in every run, a failure reported as it is found: no run takes longer
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("default", REPEATABLE)
settings.register_profile("quick", REPEATABLE, max_examples=3)  # that of `make check`
settings.register_profile("exhaustive", REPEATABLE, max_examples=50)  # that of `make exhaustive`
settings.register_profile(  # that of `make fuzz`: fresh examples, the smallest that fails, kept for the next run
    "fresh",
    REPEATABLE,
    derandomize=False,
    database=DirectoryBasedExampleDatabase("build/fuzz/examples"),
    max_examples=1000,
    phases=list(Phase),
)
settings.load_profile("default")


def costly(count: int) -> settings:
    """Return the settings of a property whose examples take long each: `count` of them, in `make exhaustive` 16
    times as many and in `make fuzz` 60 times, and a failure is reported as it is found: to make it smaller would
    take many minutes."""
    factor = {"exhaustive": 16, "fresh": 60}.get(settings.get_current_profile_name(), 1)
    return settings(max_examples=count * factor, phases=[Phase.explicit, Phase.reuse, Phase.generate])


def _slow(path: Path) -> tuple[pytest.MarkDecorator, ...]:
    return () if path.stem in QUICK else (pytest.mark.slow,)


def _exhaustive(path: Path) -> tuple[pytest.MarkDecorator, ...]:
    return () if path.stem in VARIED else (pytest.mark.exhaustive,)


def some_of(values: Collection[Any], *chosen: Any) -> list[ParameterSet]:
    """For parametrize: all values, but for `make test` those chosen, the most varied. Paths are chosen by stem,
    those of `pytest.param` by id."""
    given = [value if isinstance(value, ParameterSet) else pytest.param(value) for value in values]
    names = [value.id if isinstance(value, ParameterSet) else getattr(value, "stem", value) for value in values]
    marks = [[*each.marks] if name in chosen else [*each.marks, pytest.mark.exhaustive]
             for name, each in zip(names, given, strict=True)]  # fmt: skip
    if lost := [each for each in chosen if each not in names]:
        raise ValueError(f"there is no {lost} to choose")
    return [pytest.param(*each.values, marks=mark, id=each.id) for each, mark in zip(given, marks, strict=True)]


BUNDLED = [pytest.param(path, marks=(*_slow(path), *_exhaustive(path)), id=path.stem) for path in CAPTURES]
"""For parametrize: each bundled capture, but for `make test` those of `VARIED`."""

FEW = ("java-sasl-plain", "compare-librdkafka-1")
"""A login, and requests in flight: for tests that read a capture many times."""
SOME_BUNDLED = [
    pytest.param(path, marks=() if path.stem in FEW else (pytest.mark.slow, pytest.mark.exhaustive), id=path.stem)
    for path in CAPTURES
]
"""The same for costly tests: in `make test` those of `FEW`."""
some_bundled = pytest.mark.parametrize("bundled", SOME_BUNDLED, indirect=True)
"""For a test with the fixture `bundled`: these captures."""


@pytest.fixture(params=BUNDLED)
def bundled(request: pytest.FixtureRequest) -> Path:
    """Each bundled capture in turn; in `make test` those of `VARIED`, in `make exhaustive` the others."""
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture(scope="module", params=[pytest.param(path, marks=_slow(path), id=path.stem) for path in CAPTURES])
def every_capture(request: pytest.FixtureRequest) -> Path:
    """Each bundled capture in turn, all of them in `make test`; a module runs all its tests of one before the next."""
    path = request.param
    assert isinstance(path, Path)
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--list-skipped", metavar="FILE", help="write the tests that were skipped, for pytest @FILE")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile", None):
        # Four examples have no use for constants of our modules. To find them took a worker 2.6 s of CPU in a fresh
        # clone, and with each change of a module the examples were others.
        vars(providers).update(is_local_module_file=lambda _path: False)
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        write_byte_code(config)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Tests of the screen wait for a third of their time: so there are three workers to two cores. For a minute's tests
    (`-n logical`) it would take longer to start them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if config.option.numprocesses == "logical" else 3 * cores // 2 + cores % 2


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of `LONGEST` where workers begin: `--dist worksteal` gives each an equal part of the list, and who
    has nothing left to do steals from the end of another's part."""
    names = [name for name in LONGEST if any(item.nodeid.startswith(name) for item in items)]
    long = {name: [item for item in items if item.nodeid.startswith(name)] for name in names}
    others = iter([item for item in items if not item.nodeid.startswith(LONGEST)])
    workers, todo = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), len(items)
    found: list[pytest.Item] = []
    for worker in range(workers):
        first = [item for name in names[worker::workers] for item in long[name]]
        size = todo // (workers - worker)
        todo -= size
        found += first + list(islice(others, max(0, size - len(first))))
    items[:] = [*found, *others]


def pytest_collection_finish() -> None:
    gc.freeze()  # what was imported and collected stays, and need not be searched
    atexit.register(gc.unfreeze)  # else nanobind, and so DuckDB, prints all objects that are left when Python ends


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where CI=true, what was skipped for another reason than the known ones fails the run: nobody reads its skips."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if hasattr(session.config, "workerinput") or reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    if path := session.config.getoption("--list-skipped"):
        Path(path).write_text("".join(f"{name}\n" for name in sorted({report.nodeid for report in skipped})))
    if os.environ.get("CI") != "true":
        return
    reasons = {report.longrepr[2].removeprefix("Skipped: ") for report in skipped}
    if surprises := sorted(reason for reason in reasons if not excused(reason)):
        reporter.write_line("\nskipped, and tests/needs.py does not excuse it:\n  " + "\n  ".join(surprises), red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def _run_of_its_own() -> None:
    """What the frames of a run may become together is bounded: each test is one, whatever ran before it."""
    from dissector.core.expansion import RUN

    RUN.begin()
