"""What framing recovers of a capture that lost packets, and whether it invents anything: ``python -m tools.recovery``.

The bundled captures are the truth. Of each, packets are dropped: those before a random place, a random stretch, one
side of every connection, one in a hundred. A frame that lies wholly in packets that are left is *intact*; how many of
those come out as they are in the whole capture, and what comes out that is not in it, is counted. Messages are
compared by ends, size, API, version and correlation id.
"""

import argparse
import random
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

import dpkt
import numpy as np

from dissector.capture_session import Capture
from dissector.index.exchange_table import NO_FRAME, RowKind
from dissector.index.frame_table import FrameTable
from tests.conftest import CAPTURES
from tests.traffic import pcap

Message = tuple[object, ...]
"""What a request or a response is compared by."""
Loss = Callable[[list[bytes], random.Random], list[int]]
"""Which packets are left, by number, in order."""


def started_late(packets: list[bytes], chance: random.Random) -> list[int]:
    return list(range(chance.randrange(len(packets)), len(packets)))


def cut(packets: list[bytes], chance: random.Random) -> list[int]:
    """Up to five stretches of up to twenty packets are not there."""
    gone: set[int] = set()
    for _ in range(chance.randint(1, 5)):
        first = chance.randrange(len(packets))
        gone.update(range(first, first + chance.randint(1, 20)))
    return [n for n in range(len(packets)) if n not in gone]


def sparse(packets: list[bytes], chance: random.Random) -> list[int]:
    return [n for n in range(len(packets)) if chance.random() > 0.01]


def requests_only(packets: list[bytes], chance: random.Random) -> list[int]:
    """Started late too, half of the time: a SYN would show who the client is."""
    return _one_side(packets, chance, to_server=True)


def responses_only(packets: list[bytes], chance: random.Random) -> list[int]:
    return _one_side(packets, chance, to_server=False)


def _one_side(packets: list[bytes], chance: random.Random, *, to_server: bool) -> list[int]:
    """Servers have the lower port in every bundled capture."""
    first = chance.randrange(len(packets)) if chance.random() < 0.5 else 0
    kept = []
    for n in range(first, len(packets)):
        source, destination = ports(packets[n])
        if (source > destination) == to_server:
            kept.append(n)
    return kept


KINDS: Final = (RowKind.EXCHANGE, RowKind.SASL)
"""Bare tokens of logins count as messages: where their handshake is lost, nothing says that they are tokens."""

LOSSES: Final[dict[str, Loss]] = {
    loss.__name__.replace("_", " "): loss for loss in (started_late, cut, sparse, requests_only, responses_only)
}


def ports(packet: bytes) -> tuple[int, int]:
    tcp = dpkt.ethernet.Ethernet(packet).data.data
    return (tcp.sport, tcp.dport) if isinstance(tcp, dpkt.tcp.TCP) else (0, 0)


@dataclass
class Found:
    """The messages of a capture's exchanges."""

    requests: list[Message | None] = field(default_factory=list)
    responses: list[Message | None] = field(default_factory=list)
    """Beside each other, one of them None where there is none."""
    packets: list[tuple[set[int], set[int]]] = field(default_factory=list)
    """Which packets each side lies in."""


def found(path: str) -> Found:
    """The exchanges that are read out of a capture."""
    with Capture([path]) as capture:
        bases = [batch.base + batch.offset for batch in capture.pipeline._readers[0].batches()]
    starts = np.concatenate(bases) if bases else np.zeros(0, np.int64)
    out = Found()
    with Capture([path]) as capture:
        for _ in capture.read():
            pass
        session, flows = capture.pipeline.indexer, capture.pipeline.transport.connections
        table, frames = session.table, session.frames
        for row in np.flatnonzero(np.isin(table.kind.values, KINDS)).tolist():
            request_frame, response_frame = int(table.request.values[row]), int(table.response.values[row])
            connection = int(table.connection.values[row])
            ends = flows.endpoints(connection)
            side = session.detector.client(connection)
            who = (ends[side], ends[1 - side])
            whereabouts = []
            for frame in (request_frame, response_frame):
                pieces = frames._pieces(frame) if frame != NO_FRAME else []
                whereabouts.append({
                    n for address, size in pieces if address >= 0
                    for n in range(int(np.searchsorted(starts, address, "right")) - 1,
                                   int(np.searchsorted(starts, address + size - 1, "right")))
                })  # fmt: skip
            out.requests.append(message(frames, request_frame, who, 12))
            out.responses.append(message(frames, response_frame, who, 8))
            out.packets.append((whereabouts[0], whereabouts[1]))
    return out


def message(frames: FrameTable, frame: int, who: Message, width: int) -> Message | None:
    """Ends, size prefix, and what identifies the message: API, version and correlation id."""
    return (*who, frames.read(frame, width)[0].hex()) if frame != NO_FRAME else None


@cache
def whole(path: Path) -> tuple[list[bytes], Found]:
    """A bundled capture's packets, and the truth."""
    with path.open("rb") as file:
        packets = [packet for _, packet in dpkt.pcapng.Reader(file)]
    return packets, found(str(path))


@dataclass
class Score:
    """Counts of one kind of loss."""

    requests: int = 0
    requests_found: int = 0
    responses: int = 0
    responses_found: int = 0
    exchanges: int = 0
    exchanges_found: int = 0
    invented: list[object] = field(default_factory=list)

    def enter(self, truth: Found, left: set[int], seen: Found) -> list[Message]:
        """Compare; the intact messages that were not found."""
        intact: list[Counter[object]] = [Counter(), Counter(), Counter()]
        for request_frame, response_frame, (out, back) in zip(
            truth.requests, truth.responses, truth.packets, strict=True
        ):
            if request_frame is not None and out <= left:
                intact[0][request_frame] += 1
            if response_frame is not None and back <= left:
                intact[1][response_frame] += 1
            if request_frame is not None and response_frame is not None and out | back <= left:
                intact[2][request_frame, response_frame] += 1
        pairs = [
            pair
            for pair in zip(seen.requests, seen.responses, strict=True)
            if pair[0] is not None and pair[1] is not None
        ]
        got: list[Counter[object]] = [
            Counter(filter(None, seen.requests)),
            Counter(filter(None, seen.responses)),
            Counter(pairs),
        ]
        known: list[Counter[object]] = [
            Counter(truth.requests), Counter(truth.responses),
            Counter(zip(truth.requests, truth.responses, strict=True)),
        ]  # fmt: skip
        for name, there, came, true in zip(("requests", "responses", "exchanges"), intact, got, known, strict=True):
            setattr(self, name, getattr(self, name) + there.total())
            setattr(self, f"{name}_found", getattr(self, f"{name}_found") + (there & came).total())
            self.invented += (came - true).elements()
        return [*(intact[0] - got[0]).elements(), *(intact[1] - got[1]).elements()]

    def summary(self) -> str:
        def share(name: str) -> str:
            count, hits = getattr(self, name), getattr(self, f"{name}_found")
            return f"{name} {hits / max(1, count):7.2%} of {count:>7,}"

        words = ", ".join(map(share, ("requests", "responses", "exchanges")))
        return f"{words}; invented {len(self.invented)}"


def lossy(path: Path, loss: Loss, seed: int, folder: Path, score: Score) -> list[Message]:
    """One capture with one loss, entered in the score; what was missed."""
    packets, truth = whole(path)
    left = loss(packets, random.Random(seed))
    made = folder / "lossy.pcap"
    made.write_bytes(pcap([packets[n] for n in left]))
    return score.enter(truth, set(left), found(str(made)))


def main() -> int:
    """Print the shares; exit code 1 if anything was invented."""
    parser = argparse.ArgumentParser(prog="python -m tools.recovery", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", choices=LOSSES, help="one kind of loss")
    parser.add_argument("--capture", help="one capture, by its stem")
    parser.add_argument("--missed", action="store_true", help="print what was missed")
    request_frame = parser.parse_args()
    bad = 0
    for name, loss in LOSSES.items():
        if request_frame.only not in (None, name):
            continue
        score = Score()
        with tempfile.TemporaryDirectory() as folder:
            for path in CAPTURES:
                if request_frame.capture not in (None, path.stem):
                    continue
                for seed in range(request_frame.first, request_frame.first + request_frame.seeds):
                    before = len(score.invented)
                    missed = lossy(path, loss, seed, Path(folder), score)
                    for each in missed if request_frame.missed else ():
                        print("missed", path.stem, seed, each)
                    for thing in score.invented[before:]:
                        print("INVENTED", path.stem, seed, thing)
        print(f"{name:15} {score.summary()}", flush=True)
        bad += len(score.invented)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_utime:.0f} s of CPU")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
