"""Align two sequences of keys: find which element of one matches which of the other.

Common prefixes and suffixes match first. A short stretch between them gets a longest common subsequence; a long one is
split at the elements that both sides have once (patience diff), and without any, matched key by key, the n-th with the
n-th, as far as these are in order. So the work is bounded: O(n log n), and `MAX_EXACT_PAIRS` for a short stretch.

Invariants: a match has equal keys; both columns of matches ascend; an element is matched at most once.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final

MAX_EXACT_PAIRS: Final = 10_000
"""Pairs of elements of a stretch that gets an exact solution."""
IndexPair = tuple[int, int]


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[IndexPair]:
    """Return the matching positions, in order."""
    matches: list[IndexPair] = []
    stretches = [(0, len(a), 0, len(b))]
    while stretches:
        low_a, high_a, low_b, high_b = stretches.pop()
        while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
            matches.append((low_a, low_b))
            low_a, low_b = low_a + 1, low_b + 1
        while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
            high_a, high_b = high_a - 1, high_b - 1
            matches.append((high_a, high_b))
        if low_a == high_a or low_b == high_b:
            continue
        part_a, part_b = a[low_a:high_a], b[low_b:high_b]
        if len(part_a) * len(part_b) <= MAX_EXACT_PAIRS:
            matches += [(low_a + i, low_b + j) for i, j in _common(part_a, part_b)]
        elif anchors := _anchors(part_a, part_b):
            edges = [(-1, -1), *anchors, (len(part_a), len(part_b))]
            matches += [(low_a + i, low_b + j) for i, j in anchors]
            stretches += [(low_a + i + 1, low_a + k, low_b + j + 1, low_b + m) for (i, j), (k, m) in pairwise(edges)]
        else:
            matches += [(low_a + i, low_b + j) for i, j in _nth_with_nth(part_a, part_b)]
    return sorted(matches)


def out_of_order(a: Sequence[Hashable], b: Sequence[Hashable], matches: list[IndexPair]) -> list[IndexPair]:
    """Return the pairs of unmatched elements with equal keys: both sides have them, in another order."""
    unmatched_b: dict[Hashable, list[int]] = defaultdict(list)
    matched_a, matched_b = {i for i, _ in matches}, {j for _, j in matches}
    for j in range(len(b) - 1, -1, -1):
        if j not in matched_b:
            unmatched_b[b[j]].append(j)
    return [(i, unmatched_b[key].pop()) for i, key in enumerate(a) if i not in matched_a and unmatched_b.get(key)]


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[IndexPair]:
    """Return elements that both sides have exactly once, as many as are in order."""
    count_a, count_b = Counter(a), Counter(b)
    where = {key: j for j, key in enumerate(b) if count_b[key] == 1}
    return _ascending([(i, where[key]) for i, key in enumerate(a) if count_a[key] == 1 and key in where])


def _nth_with_nth(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[IndexPair]:
    """Return the n-th of a key on both sides, as many as are in order."""
    where: dict[Hashable, list[int]] = defaultdict(list)
    for j in range(len(b) - 1, -1, -1):
        where[b[j]].append(j)
    return _ascending([(i, where[key].pop()) for i, key in enumerate(a) if where.get(key)])


def _ascending(matches: list[IndexPair]) -> list[IndexPair]:
    """Return the longest subsequence that ascends in B of matches that ascend in A."""
    tails: list[int] = []
    """For each length, the smallest position in B that ends an ascending subsequence of that length."""
    ends: list[int] = []
    before: list[int] = []
    for n, (_, j) in enumerate(matches):
        length = bisect_left(tails, j)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(j)
            ends.append(n)
        else:
            tails[length], ends[length] = j, n
    found: list[IndexPair] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(matches[at])
        at = before[at]
    return found[::-1]


def _common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[IndexPair]:
    """Return a longest common subsequence, by dynamic programming."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            best = max(lengths[i + 1][j], lengths[i][j + 1])
            lengths[i][j] = lengths[i + 1][j + 1] + 1 if a[i] == b[j] else best
    found: list[IndexPair] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return found
