"""Many cases in one test.

What runs for a millisecond costs several as a test of its own: each worker collects it, it is set up and reported.
There `cases` takes the place of `pytest.mark.parametrize`: the same arguments, one test.

Invariants:
  * all cases run, also behind one that fails; the first failure is shown as pytest shows it, and all are named;
  * each case has an empty `tmp_path`, a `monkeypatch` that is undone behind it, and a `capsys` of its own output;
    other fixtures are shared by all;
  * a case that skips fails: nobody would see it.
"""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

FAILURES = (Exception, pytest.fail.Exception, pytest.skip.Exception)
MOST_NAMED = 20


class CaseRun:
    """Cases that run one after the other, and what failed of them."""

    def __init__(self) -> None:
        self._count = 0
        self._failed: list[tuple[str, BaseException]] = []

    @contextmanager
    def case(self, name: str, fixtures: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Give a case its fixtures, and keep its failure."""
        self._count += 1
        found = dict(fixtures)
        try:
            with ExitStack() as stack:
                if "tmp_path" in found:
                    found["tmp_path"] = found["tmp_path"] / str(self._count)
                    found["tmp_path"].mkdir()
                if "monkeypatch" in found:
                    found["monkeypatch"] = stack.enter_context(found["monkeypatch"].context())
                if "capsys" in found:
                    found["capsys"].readouterr()
                yield found
        except FAILURES as error:
            self._failed.append((name, error))

    def finish(self) -> None:
        """Raise the first failure, with the names of all."""
        if not self._failed:
            return
        first = self._failed[0][1]
        if isinstance(first, pytest.skip.Exception):
            first = AssertionError(f"a case skips, it is to be a test of its own: {first}")
        lines = [f"  {name}: {_first_line(error)}" for name, error in self._failed]
        more = [f"  and {len(lines) - MOST_NAMED} others"] if len(lines) > MOST_NAMED else []
        first.add_note("\n".join([f"{len(lines)} of {self._count} cases fail:", *lines[:MOST_NAMED], *more]))
        raise first


def cases(
    names: str | Sequence[str], values: Iterable[Any], ids: Callable[[Any], object] | Iterable[str] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """As `pytest.mark.parametrize`, but the cases are one test."""
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    rows = [(value,) if len(keys) == 1 else tuple(value) for value in values]
    given = [_name(row, ids) for row in rows] if ids is None or callable(ids) else [*ids]
    named = [(name, dict(zip(keys, row, strict=True))) for name, row in zip(given, rows, strict=True)]
    assert named, "a test of no case can't fail"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        assert signature.parameters.keys() >= {*keys}

        @functools.wraps(test)
        def all_cases(**fixtures: Any) -> None:
            run = CaseRun()
            for name, values in named:
                with run.case(name, fixtures) as found:
                    test(**values, **found)
            run.finish()

        @functools.wraps(test)
        async def all_cases_awaited(**fixtures: Any) -> None:
            run = CaseRun()
            for name, values in named:
                with run.case(name, fixtures) as found:
                    await test(**values, **found)
            run.finish()

        decorated = all_cases_awaited if inspect.iscoroutinefunction(test) else all_cases
        fixtures = [each for name, each in signature.parameters.items() if name not in keys]
        decorated.__signature__ = signature.replace(parameters=fixtures)  # pytest reads it
        return decorated

    return decorate


def _name(row: Sequence[Any], ids: Callable[[Any], object] | None) -> str:
    """What a case is called: its values."""
    return "-".join(str(ids(each)) if ids else each if isinstance(each, str) else repr(each)[:80] for each in row)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
