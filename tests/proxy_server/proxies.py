"""A proxy that runs as users run it: a process of its own, which records to a file. Here it is forked: to start Python
took four fifths of the CPU of most of these tests. Those of the API and of commands start it."""

import contextlib
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dpkt

from dissector.capture.live import Recording
from dissector.capture.live.recorder_process import RecorderProcess
from dissector.capture.live.settings import RecordingSettings
from dissector.capture_session import Capture
from dissector.proxy_server import BrokerAddress, ProxySettings
from tests.forked import Program


@dataclass
class RunningProxy:
    """A proxy, and the file that it records to."""

    recording: Recording
    path: Path

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens for the first broker."""
        return self.address_of(0)

    def address_of(self, number: int) -> tuple[str, int]:
        found = BrokerAddress.parse(self.recording.listening[number][0])
        return found.host, found.port

    @property
    def bootstrap(self) -> str:
        return self.recording.listening[0][0]

    def stop(self) -> None:
        self.recording.stop()
        self.recording.join()

    @contextlib.contextmanager
    def capture(self) -> Iterator[Capture]:
        """What it recorded; it is stopped."""
        self.stop()
        with Capture([str(self.path)]) as capture:
            for _ in capture.read():
                pass
            yield capture

    def streams(self) -> list[tuple[bytes, bytes]]:
        """Of each connection that was recorded, what the client sent and what the broker did, by another reader of
        packets, which holds the sequence numbers to be without gaps; the proxy is stopped."""
        self.stop()
        sent: dict[bytes, list[bytes]] = {}
        following: dict[tuple[bytes, bool], int] = {}
        with self.path.open("rb") as file:
            for _, data in dpkt.pcapng.Reader(file):
                ip = dpkt.ethernet.Ethernet(data).data
                tcp = ip.data
                here, there = ip.src + tcp.sport.to_bytes(2, "big"), ip.dst + tcp.dport.to_bytes(2, "big")
                is_client = here + there in sent or there + here not in sent
                key = here + there if is_client else there + here
                stream = sent.setdefault(key, [b"", b""])
                begins_or_ends = bool(tcp.flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_FIN))
                assert following.get((key, is_client), tcp.seq) == tcp.seq
                following[key, is_client] = (tcp.seq + len(tcp.data) + begins_or_ends) % (1 << 32)
                stream[not is_client] += tcp.data
        return [(client, broker) for client, broker in sent.values()]

    def said(self) -> list[str]:
        """What it said so far."""
        return [*self.recording.messages()]


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side closes a connection before it sends anything."""
    try:
        return connection.recv(999) == b""
    except ConnectionResetError:
        return True


def forked(settings: RecordingSettings) -> RecorderProcess:
    """As `start_recorder`."""
    ours, its = socket.socketpair()
    files = (its.detach(), os.open(os.devnull, os.O_WRONLY), os.dup(2))
    program = Program(settings.RECORDER, [settings.as_json()], os.environ, files, kind="proxy")
    return RecorderProcess(ours, program.pid, program.wait)


@contextlib.contextmanager
def proxy(folder: Path, *brokers: str, **settings: object) -> Iterator[RunningProxy]:
    """A proxy for brokers, on ports that are free."""
    path = folder / "proxied.pcapng"
    addresses = tuple(map(BrokerAddress.parse, brokers))
    wanted = ProxySettings(addresses, path=str(path), **settings)
    with Recording(wanted, forked(wanted)) as recording:
        yield RunningProxy(recording, path)
