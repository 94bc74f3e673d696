"""Live capture measured by hand, as root: `python -m tools.benchmarks.live [--rate N] [--seconds S]`.

A client sends requests over loopback at a steady rate, one `send` a frame, so that each is a packet, and a server
answers each by its correlation id in the same way. In one run our capture process, tcpdump and dumpcap capture side by
side; in a second one packets are captured and indexed, as for the screen; in a third one `kdissect live` prints them.
"""

import argparse
import contextlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing import Process, Queue
from pathlib import Path
from typing import Any, Final

from dissector.capture.live import CaptureSettings, Recording, recording_source
from dissector.capture_session import Capture
from dissector.cli.live import summary
from tests.traffic import request

CONNECTIONS: Final = 4
PORT: Final = 19092
TICK: Final = 0.002
SIZE: Final = len(request(0))
ANSWER: Final = struct.Struct(">ii8x")


def serve(ready: Any) -> None:
    """Answer whatever number of connections in turn; ends when they are closed."""
    with socket.create_server(("127.0.0.1", PORT)) as listener:
        ready.put(True)
        clients = [listener.accept()[0] for _ in range(CONNECTIONS)]
    rest = dict.fromkeys(clients, b"")
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setblocking(False)
    while rest:
        for client in [*rest]:
            with contextlib.suppress(BlockingIOError):
                data = client.recv(1 << 18)
                if not data:
                    del rest[client]
                    continue
                data = rest[client] + data
                whole = len(data) // SIZE * SIZE
                rest[client] = data[whole:]
                client.setblocking(True)
                for at in range(8, whole, SIZE):
                    client.send(ANSWER.pack(12, int.from_bytes(data[at : at + 4], "big")))
                client.setblocking(False)
        time.sleep(0.0002)


def ask(rate: int, seconds: float, results: Any) -> None:
    """Send at a rate; tells how many requests were sent, how many answers came, in how many seconds."""
    clients = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(CONNECTIONS)]
    for client in clients:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sent = got = 0
    began = time.monotonic()
    while (now := time.monotonic() - began) < seconds:
        due = min(int(now * rate), sent + 2_000)
        for number in range(sent, due):
            clients[number % CONNECTIONS].send(request(number // CONNECTIONS))
        sent = max(sent, due)
        got += sum(_drained(client) for client in clients)
        time.sleep(TICK)
    took = time.monotonic() - began
    while got < sent * ANSWER.size:
        got += sum(_drained(client) for client in clients)
        time.sleep(TICK)
    results.put((sent, got // ANSWER.size, took))


def _drained(client: socket.socket) -> int:
    with contextlib.suppress(BlockingIOError):
        return len(client.recv(1 << 20, socket.MSG_DONTWAIT))
    return 0


def traffic(rate: int, seconds: float) -> tuple[int, int, float]:
    """Make it: requests, answers, seconds."""
    queue: Any = Queue()
    server = Process(target=serve, args=(queue,))
    server.start()
    queue.get()
    client = Process(target=ask, args=(rate, seconds, queue))
    client.start()
    results: tuple[int, int, float] = queue.get()
    client.join()
    server.join()
    return results


def cpu_seconds(process: int) -> float:
    """User and system time of a running process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@contextlib.contextmanager
def program(*words: str) -> Iterator[dict[str, Any]]:
    """Another program that captures; what it says when ended, and its CPU seconds."""
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    found: dict[str, Any] = {}
    time.sleep(1)
    yield found
    found["cpu"] = cpu_seconds(process.pid)
    process.send_signal(2)
    _, output = process.communicate()
    counts = re.search(r"(\d+) packets captured", output) or re.search(r"Packets captured: (\d+)", output)
    drops = re.search(r"(\d+) packets dropped by kernel", output) or re.search(
        r"dropped on interface .*: \d+/(\d+)", output
    )
    found |= {"packets": int(counts[1]) if counts else -1, "dropped": int(drops[1]) if drops else -1}


def engines(rate: int, seconds: float, folder: Path) -> None:
    """The capture processes side by side."""
    wanted = CaptureSettings("lo", (PORT,), "", promiscuous=False, path=str(folder / "ours.pcapng"))
    tcpdump = ("tcpdump", "-n", "-p", "-i", "lo", "-Z", "root", "-B", "65536", "-w", str(folder / "tcpdump"))
    dumpcap = ("dumpcap", "-q", "-n", "-p", "-i", "lo", "-B", "64", "-w", str(folder / "dumpcap"), "-f")
    words = f"tcp port {PORT}"
    with Recording(wanted) as ours, program(*tcpdump, words) as one, program(*dumpcap, words) as other:
        sent, received, took = traffic(rate, seconds)
        time.sleep(2)
        cpu = cpu_seconds(ours._process.pid)
        ours.stop()
        ours.join()
    print(f"{sent:,} exchanges made ({received:,} answered) in {took:.1f} s: {sent / took:,.0f} a second")
    with Capture([wanted.path]) as capture:
        for _ in capture.read():
            pass
        print(f"  exchanges in our file: {len(capture):,}")
    table = [("AF_PACKET", ours.captured, ours.dropped, cpu)]
    table += [
        (name, each["packets"], each["dropped"], each["cpu"]) for name, each in (("tcpdump", one), ("dumpcap", other))
    ]
    for name, packets, dropped, seconds_used in table:
        each_us = 1e6 * seconds_used / max(packets, 1)
        print(f"  {name:<10} {packets:>11,} packets {dropped:>7,} dropped {seconds_used:6.2f} s {each_us:5.2f} µs each")


def indexed(rate: int, seconds: float) -> None:
    """Captured and indexed, as for the screen: by two processes beside those of the client and the server."""
    wanted = CaptureSettings("lo", (PORT,), "", promiscuous=False, path="")
    results: list[tuple[int, int, float]] = []
    with Recording(wanted) as recording, Capture([recording_source(recording)]) as capture:
        making = threading.Thread(target=lambda: results.append(traffic(rate, seconds)))
        making.start()
        before = time.process_time()
        for _ in capture.read(sort=False):
            if results and not recording.stopping:
                at_end, cpu = len(capture), time.process_time() - before
                recording.stop()
                ended = time.monotonic()
        behind = time.monotonic() - ended
        count, _, took = results[0]
        print(f"{count:,} exchanges made in {took:.1f} s: {count / took:,.0f} a second; indexed")
        print(f"  {summary(capture, recording)}")
        print(f"  {at_end:,} exchanges and {cpu:.1f} CPU s when the client ended, the rest {behind:.1f} s later")


def printed(rate: int, seconds: float, folder: Path, form: str) -> None:
    """`kdissect live`, its rows in a file."""
    words = ["-m", "dissector.cli.main", "live", "-p", str(PORT), "--format", form, "-w", str(folder / "live.pcapng")]
    with (folder / "rows").open("wb") as rows:
        process = subprocess.Popen([sys.executable, *words], stdout=rows, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        process.stderr.readline()
        sent, _, took = traffic(rate, seconds)
        cpu = cpu_seconds(process.pid)
        process.send_signal(2)
        ended = time.monotonic()
        output = process.communicate()[1].strip().splitlines()
    print(f"{sent:,} exchanges made in {took:.1f} s: {sent / took:,.0f} a second; live --format {form}")
    print(f"  {output[-1]}")
    with (folder / "rows").open("rb") as rows:
        print(
            f"  {sum(1 for _ in rows) - (form == 'text'):,} rows printed; {cpu:.1f} CPU s when the client ended,",
            end=" ",
        )
    print(f"then {time.monotonic() - ended:.1f} s to print what was behind")


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=30_000)
    parser.add_argument("--printed-rate", type=int, default=3_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--form", default="text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdissect-bench-") as name:
        engines(options.rate, options.seconds, Path(name))
        indexed(options.rate, options.seconds)
        printed(options.printed_rate, options.seconds, Path(name), options.form)


if __name__ == "__main__":
    main()
