"""Runs mutants: a plugin of pytest that runs all collected tests once, to learn which lines each of them reaches, and
then those that reach a mutant's line in a fork for each mutant, the quickest first, up to the first that fails.

In the fork the code of functions that are there already is exchanged, and the values of constants wherever a module has
imported them: nothing is imported again.

Invariant: a fork ends by itself; an endless loop runs into its limit of CPU seconds, and counts as noticed.
"""

import ast
import gc
import os
import re
import resource
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import _lru_cache_wrapper, cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from tools.mutants.mutations import Mutant

KILLED, SURVIVED, IMPOSSIBLE = "killed", "survived", "impossible"
TIMED_OUT: Final = "timed out"
LONGEST_WAIT: Final = 300
"""Seconds until a fork is ended that waits for something."""
MEMORY: Final = 2 << 30
"""Bytes that a fork may take in addition."""


class MutantRuns:
    """Mutants, and what became of each."""

    def __init__(self, mutants: Sequence[Mutant], files: Sequence[Path], seconds: float) -> None:
        self._mutants = mutants
        self._seconds = seconds
        self._files = {str(file.resolve()) for file in files}
        """Those whose lines are noted: of the whole package, as a constant is used in other files than its own."""
        self._reached: defaultdict[tuple[str, int], set[pytest.Item]] = defaultdict(set)
        self._cost: dict[pytest.Item, float] = {}
        """CPU seconds of each while its lines are noted: twice to twenty times what it takes without."""
        self.count: Counter[str] = Counter()
        self.survivors: list[Mutant] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests, then the mutants."""
        for item, following in pairwise([*session.items, None]):
            self._run_whole(item, following)
        gc.unfreeze()
        objects = gc.get_objects()
        functions = [each for each in objects if isinstance(each, FunctionType)]
        self._functions: defaultdict[Any, list[FunctionType]] = defaultdict(list)
        for function in functions:
            if function.__code__.co_filename in self._files:
                self._functions[_key(function.__code__)].append(function)
        caches = [each for each in objects if isinstance(each, _lru_cache_wrapper)]
        self._caches = [each for each in caches if _file_of(each) in self._files]
        del objects
        gc.freeze()
        for number, mutant in enumerate(self._mutants, 1):
            outcome = self._outcome(mutant)
            self.count[outcome] += 1
            if outcome == SURVIVED:
                self.survivors.append(mutant)
                print(f"\n{mutant}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{number}/{len(self._mutants)} {dict(self.count)}", end="", file=sys.stderr, flush=True)
        return True

    def _run_whole(self, item: pytest.Item, following: pytest.Item | None) -> None:
        lines: set[tuple[str, int]] = set()

        def in_file(frame: FrameType, _event: str, _arg: object) -> Any:
            lines.add((frame.f_code.co_filename, frame.f_lineno))
            return in_file

        def called(frame: FrameType, _event: str, _arg: object) -> Any:
            return in_file if frame.f_code.co_filename in self._files else None

        began = _cpu_seconds()
        sys.settrace(called)
        reports = runtestprotocol(item, nextitem=following, log=False)
        sys.settrace(None)
        self._cost[item] = _cpu_seconds() - began
        if any(report.failed for report in reports):
            raise pytest.UsageError(f"{item.nodeid} fails without a mutant: {reports[-2].longreprtext}")
        for place in lines:
            self._reached[place].add(item)

    def _outcome(self, mutant: Mutant) -> str:
        tests = sorted(self._tests_of(mutant), key=self._cost.__getitem__)
        if not tests:
            return SURVIVED
        pid = os.fork()
        if not pid:
            self._in_fork(mutant, tests)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            return TIMED_OUT if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL) else KILLED
        return (SURVIVED, KILLED, IMPOSSIBLE)[os.WEXITSTATUS(status)]

    def _tests_of(self, mutant: Mutant) -> set[pytest.Item]:
        """The tests that reach its line; of a constant those whose file names it, or that reach a line that does, or
        what is made of it."""
        file = str(mutant.path.resolve())
        if not mutant.constant:
            return self._reached[file, mutant.line]
        names = {mutant.constant, *(name for _, name, _ in _made_of(mutant.constant))}
        lines = ((each, line) for each in self._files for name in names for line in _lines_with(_text(each), name))
        named = {item for item in self._cost if any(_lines_with(_text(str(item.path)), name) for name in names)}
        return named.union(*(self._reached[line] for line in lines))

    def _in_fork(self, mutant: Mutant, tests: list[pytest.Item]) -> None:
        code = 1
        try:
            began = _cpu_seconds()
            pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
            if pages:
                size = pages * resource.getpagesize() + MEMORY
                resource.setrlimit(resource.RLIMIT_AS, (size, size))
            signal.alarm(LONGEST_WAIT)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            try:
                self._apply(mutant)
            except (SyntaxError, ValueError):
                os._exit(2)
            for item, following in pairwise([*tests, None]):
                if (spent := _cpu_seconds() - began) > self._seconds:
                    break
                limit = int(2 + spent + self._cost[item])
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))
                if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
                    os._exit(1)
            code = 0
        finally:
            os._exit(code)

    def _apply(self, mutant: Mutant) -> None:
        file = str(mutant.path.resolve())
        for each in self._caches:
            each.cache_clear()
        if mutant.constant:
            _set_constants(file, mutant)
            return
        for code in _nested(compile(mutant.text, file, "exec", dont_inherit=True)):
            for function in self._functions.get(_key(code), ()):
                function.__code__ = code


def _set_constants(file: str, mutant: Mutant) -> None:
    """Give the constant another value in all modules that have it, and then what modules have made of it."""
    own = next(each for each in _modules() if each.__file__ == file)
    values = [(own, name, value) for name, value in _assigned(mutant.text) if name == mutant.constant]
    for module, name, value in values + _made_of(mutant.constant):
        old = vars(module)[name]
        new = eval(compile(ast.Expression(value), module.__file__, "eval"), dict(vars(module)))
        for each in _modules():
            there = vars(each).get(name)
            if there is old or (isinstance(old, int | float | bytes) and type(there) is type(old) and there == old):
                setattr(each, name, new)


@cache
def _made_of(constant: str) -> list[tuple[ModuleType, str, ast.expr]]:
    """The constants that modules make of one, and of these in turn: each behind all that it is made of."""
    found: dict[tuple[str, str], tuple[ModuleType, str, ast.expr]] = {}

    def find(constant: str, seen: set[tuple[str, str]]) -> None:
        for module in _modules():
            text = _text(module.__file__)
            for name, value in _assigned(text) if _lines_with(text, constant) else ():
                key = module.__file__, name
                if key not in seen and name != constant and constant in _names(value):
                    seen.add(key)
                    find(name, seen)
                    found[key] = module, name, value

    find(constant, set())
    return list(found.values())[::-1]


@cache
def _assigned(text: str) -> list[tuple[str, ast.expr]]:
    """The constants of a module, and their values."""
    targets = ((node.targets[0] if isinstance(node, ast.Assign) else node.target, node.value)
               for node in ast.parse(text).body if isinstance(node, ast.Assign | ast.AnnAssign))  # fmt: skip
    return [(target.id, value) for target, value in targets if isinstance(target, ast.Name) and value is not None]


def _modules() -> list[ModuleType]:
    """Those of ours."""
    return [each for name, each in list(sys.modules.items()) if name.split(".")[0] in ("dissector", "tests")]


def _names(expression: ast.expr) -> set[str]:
    """The names in an expression, `link.VLAN` by its last part."""
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)}


@cache
def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


@cache
def _lines_with(text: str, name: str) -> list[int]:
    if name not in text:
        return []
    word = re.compile(rf"\b{name}\b")
    return [number for number, line in enumerate(text.splitlines(), 1) if word.search(line)]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _cpu_seconds() -> float:
    """Of this process and of those that it has waited for: a test that starts others is not quick."""
    return sum(os.times()[:4])


def _file_of(cache: Any) -> str:
    return getattr(getattr(cache.__wrapped__, "__code__", None), "co_filename", "")
