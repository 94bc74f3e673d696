"""Filters evaluated in every way that there is, and the JSON objects of exchanges to compare the results with."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dissector.capture_session import Capture
from dissector.exchange.model import Exchange
from dissector.exchange.to_json import json_line
from dissector.filter import parse
from dissector.filter.column_evaluation import NO, OPEN, YES
from dissector.filter.selection import evaluate_index
from tests.conftest import PCAPS

Leaf = tuple[tuple[str, ...], Any]
"""The names on the way to a value of a JSON object, and the value."""


@cache
def opened(*names: str) -> Capture:
    """Bundled captures, or files by their paths, read; they stay open for who asks next."""
    capture = Capture([name if "/" in name else str(PCAPS / f"{name}.pcapng") for name in names])
    for _ in capture.read():
        pass
    return capture


@cache
def exchanges(name: str) -> tuple[Exchange, ...]:
    """All of a bundled capture."""
    return tuple(opened(name).exchanges())


@cache
def objects(name: str) -> tuple[dict[str, Any], ...]:
    """Their JSON objects."""
    return tuple(json.loads(json_line(each)) for each in exchanges(name))


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Every value of a JSON object that is neither an object nor an array."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    else:
        yield path, value


def matching_rows(text: str, capture: Capture) -> list[int]:
    """The rows that fit, from 0: the same by columns, by exchanges one by one, by `select` and by `matching`."""
    wanted = parse(text)
    one_by_one = [n for n, each in enumerate(capture.exchanges()) if wanted.matches(each, capture.start_ns)]
    answers = evaluate_index(wanted, capture, range(len(capture)))
    assert set(np.flatnonzero(answers == YES).tolist()) <= set(one_by_one), text
    assert not set(np.flatnonzero(answers == NO).tolist()) & set(one_by_one), text
    if wanted.is_indexed:
        assert all(is_odd(capture.exchange(n)) for n in np.flatnonzero(answers == OPEN).tolist()), text
    selected = [row for found in capture.select(wanted) for row in found.rows.tolist()]
    assert selected == one_by_one, text
    assert capture.matching(wanted, np.arange(len(capture))).tolist() == one_by_one, text
    return one_by_one


def is_odd(exchange: Exchange) -> bool:
    """Whether the index alone cannot decide a row."""
    sides = exchange.fields.request_size, exchange.fields.response_size
    return exchange.is_stored or exchange.fields.request_size is None or None not in sides


def bundled(name: str) -> str:
    return str(Path(PCAPS) / f"{name}.pcapng")
