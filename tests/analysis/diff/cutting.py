"""Captures that begin late and end early: the packets of a recording in a part of its time."""

from io import BytesIO
from pathlib import Path

import cramjam
import dpkt

from tests.conftest import PCAPS

TENTHS = 10


def recording(client: str, name: str) -> Path:
    return PCAPS / "clients" / client / f"{name}.pcapng.zst"


def cut(path: Path, start: int, end: int, folder: Path) -> str:
    """Write the packets from one tenth of the time to another one, both from 0 to 10."""
    data = path.read_bytes()
    reader = dpkt.pcapng.Reader(BytesIO(bytes(cramjam.zstd.decompress(data)) if path.suffix == ".zst" else data))
    packets = [(float(time), packet) for time, packet in reader]
    first, length = packets[0][0], packets[-1][0] - packets[0][0]
    out = folder / f"{path.parent.name}-{path.name.partition('.')[0]}-{start}-{end}.pcap"
    with out.open("wb") as file:
        writer = dpkt.pcap.Writer(file, linktype=reader.datalink(), nano=True)
        for time, packet in packets:
            if start / TENTHS * length <= time - first <= end / TENTHS * length:
                writer.writepkt(packet, time)
    return str(out)
