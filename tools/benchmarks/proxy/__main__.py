"""The proxy beside a plain asyncio relay, one that writes to a file, and socat where it is installed:
`python -m tools.benchmarks.proxy`.

A client and a server of our own speak through each of them in turn, several rounds in one run: responses of 1 MB, small
exchanges in batches and at a rate, a thousand connections. CPU is that of the process in between alone, user and
system, of the round that took least; ratios are those against the plain relay. Latencies are the client's, without
anything in between, too. The proxy records to a ring; of the others, only the one that says so writes anything.
"""

import argparse
import asyncio
import resource
import socket
import sys
from collections.abc import Callable
from multiprocessing import Process
from typing import Final

from tools.benchmarks.proxy.between import KINDS, Between, Kind, nothing, ours, plain, writing
from tools.benchmarks.proxy.server import FETCH, FETCH_WITH_ENDPOINTS, serve
from tools.benchmarks.proxy.works import BATCH, Measured, batches, large, many, measure, paced, unread

CONNECTIONS: Final = 1_000
RATE: Final = 5_000
"""Exchanges a second at which latencies are measured."""
WARM_SECONDS: Final = 2
Run = Callable[[Between], Measured]
Listening = tuple[str, int]


def compare(
    name: str, run: Run, scale: float, unit: str, server: Listening, rounds: int, kinds: tuple[Kind, ...]
) -> None:
    """Print a line for each of them: CPU, its ratio, exchanges a second or latencies."""
    best: dict[str, Measured] = {}
    for _ in range(rounds):
        for kind in kinds:
            with kind(server) as between:
                found = run(between)
            before = best.get(between.name)
            if before is None or found.cpu < before.cpu:
                best[between.name] = found
    base = next(iter(best.values())).cpu
    for which, found in best.items():
        print(f"{name:<22} {which:<25} {found.cpu / scale:7.2f} {unit:<9} {found.cpu / base:5.2f}x{_words(found)}")
    sys.stdout.flush()


def delays(name: str, run: Run, server: Listening, rounds: int) -> None:
    """Print the latencies of the round with the lowest p99: nothing in between, a plain relay, one that writes, and the
    proxy. Those of the first seconds are left out: a process that has just begun waits for its turn."""
    best: dict[str, list[float]] = {}
    for _ in range(rounds):
        for kind in (nothing, plain, writing, ours):
            with kind(server) as between:
                found = sorted(run(between).latencies[WARM_SECONDS * RATE :])
            if between.name not in best or _part(found, 99) < _part(best[between.name], 99):
                best[between.name] = found
    for which, found in best.items():
        print(f"{name:<22} {which:<25} p50 {_part(found, 50):6.0f} µs  p99 {_part(found, 99):6.0f} µs")
    sys.stdout.flush()


def _part(latencies: list[float], percent: int) -> float:
    """A percentile of sorted latencies, in microseconds."""
    return latencies[len(latencies) * percent // 100] * 1e6


def _words(found: Measured) -> str:
    latencies = sorted(found.latencies)
    if not latencies:
        return f"  {found.clock:.2f} s"
    return (
        f"  {len(latencies) / found.clock:,.0f}/s  p50 {_part(latencies, 50):.0f} µs  p99 {_part(latencies, 99):.0f} µs"
    )


def held(server: Listening) -> None:
    """Print what the proxy holds at most with many connections, and when a client does not read."""
    with ours(server) as between:
        begun = between.memory()
        asyncio.run(many(between, CONNECTIONS, 2))
        with_many = between.memory()
    with ours(server) as between:
        unread(between, 3)
        print(
            f"memory: {begun >> 20} MB at the start, {with_many >> 20} MB with {CONNECTIONS:,} connections, "
            f"{between.memory() >> 20} MB with a client that does not read"
        )


def main() -> None:
    """Print tables."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=int, default=300)
    options.add_argument("--exchanges", type=int, default=100_000)
    options.add_argument("--rounds", type=int, default=5)
    wanted = options.parse_args()
    megabytes, exchanges, rounds = wanted.megabytes, wanted.exchanges, wanted.rounds
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2_048)
    server = Process(target=serve, args=(listener,), daemon=True)
    server.start()
    at: Listening = listener.getsockname()
    per_gigabyte, per_million = (megabytes / 1_000, "s/GB"), (exchanges / 1e6, "s/million")
    works = {
        "Fetch v12, 1 MB": (large(megabytes, FETCH), *per_gigabyte),
        "Fetch v18, 1 MB": (large(megabytes, FETCH_WITH_ENDPOINTS), *per_gigabyte),
        f"small, {BATCH} at once": (batches(exchanges), *per_million),
        f"Fetch v18, {BATCH} at once": (batches(exchanges, FETCH_WITH_ENDPOINTS), *per_million),
        "small, 30,000/s": (paced(exchanges, 30_000), *per_million),
    }
    for name, (work, scale, unit) in works.items():
        compare(name, lambda between, work=work: measure(between, work), scale, unit, at, rounds, KINDS)
    count = exchanges // 4 + WARM_SECONDS * RATE
    delays(f"small, {RATE:,}/s", lambda between: measure(between, paced(count, RATE)), at, rounds)
    name = f"{CONNECTIONS:,} connections"
    each = max(1, exchanges // CONNECTIONS // 4)
    scale = CONNECTIONS * each / 1e6
    compare(name, lambda it: asyncio.run(many(it, CONNECTIONS, each)), scale, "s/million", at, 2, (plain, ours))
    held(at)
    server.terminate()


if __name__ == "__main__":
    main()
