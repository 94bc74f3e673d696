"""What decryption costs: the same frames plain and encrypted, in large and small records, beside tshark with the keys.

The sessions are OpenSSL's (TLS 1.3). tshark gets a tenth, and its figures are of that.
"""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tls.sessions import session
from tests.traffic import Turn, conversation, ethernet, pcap, request, response
from tools.benchmarks.measuring import KDISSECT, Figure, head, line

LARGE, SMALL = 1_600, 20_000
"""Exchanges: with requests of 65,000 bytes, in records of 16 KiB; and with messages of about 90, a record each."""
TENTH: Final = 10
_SECONDS: Final = 1_700_000_000


def main(folder: Path) -> None:
    """The tables."""
    for name, count, sizes in (("records of 16 KiB", LARGE, (65_000, 8)), ("records of 90 bytes", SMALL, (60, 80))):
        head(f"TLS 1.3, {name}")
        whole = _written(folder / "whole", _turns(count, *sizes))
        plain = line("kdissect show --fields, plain", _fields(whole / "plain.pcap"))
        encrypted = line("kdissect show --fields, decrypted", _fields(whole / "tls.pcap", whole / "keys.log"))
        print(f"  times the CPU of the plain frames: {encrypted.cpu / plain.cpu:.1f}")
        if shutil.which("tshark"):
            _beside_tshark(_written(folder / "tenth", _turns(count // TENTH, *sizes)))


def _beside_tshark(captures: Path) -> None:
    capture, log = captures / "tls.pcap", captures / "keys.log"
    ours = line("kdissect show --fields, a tenth", _fields(capture, log))
    ports = ["-d", "tcp.port==9092,tls", "-d", "tls.port==9092,kafka"]
    words = ["tshark", "-r", str(capture), "-o", f"tls.keylog_file:{log}", *ports, "-T", "fields", "-Y", "kafka"]
    theirs: Figure = line("tshark -T fields, a tenth", [*words, "-e", "kafka.correlation_id"], 1)
    print(f"  tshark's CPU by ours: {theirs.cpu / ours.cpu:.1f}")


def _fields(capture: Path, *key_logs: Path) -> list[str]:
    keys = [word for log in key_logs for word in ("--keylog", str(log))]
    return [*KDISSECT, "show", str(capture), "--fields", "correlation_id", *keys]


def _turns(count: int, request_size: int, response_size: int) -> Iterator[Turn]:
    for number in range(count):
        yield Turn(True, request(number, api_key=3, version=0, body=bytes(4 + request_size)))
        yield Turn(False, response(number, bytes(response_size)))


def _written(folder: Path, turns: Iterator[Turn]) -> Path:
    """A folder with the frames as they are, encrypted, and the key log."""
    folder.mkdir(exist_ok=True)
    said = list(turns)
    made = session(said)
    for name, each in (("plain.pcap", said), ("tls.pcap", made.turns)):
        with (folder / name).open("wb") as file:
            file.write(pcap([]))
            for number, packet in enumerate(conversation(each)):
                data = ethernet(packet)
                time = struct.pack("<II", _SECONDS + number // 1_000_000, number % 1_000_000)
                file.write(time + struct.pack("<II", len(data), len(data)) + data)
    (folder / "keys.log").write_bytes(made.key_log)
    return folder
