"""Filters that the kernel runs on every packet: classic BPF, assembled here for ports, by tcpdump for expressions.

The filter for ports works with any link layer, as Linux gives a packet's protocol and the position of its network
header separately (`linux/filter.h`: SKF_AD_OFF, SKF_NET_OFF). One VLAN tag that the network card did not strip is
skipped. Fragments pass, as only the first one has ports.
"""

import ctypes
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Sequence
from typing import Final, NamedTuple

from dissector.capture.errors import CaptureError
from dissector.core.text import clean

MAX_PORTS: Final = 100
"""A program may have 4,096 instructions; a port takes 16."""
WHOLE_PACKETS: Final = 262_144
"""Maximum bytes of a packet that are kept: more than any has."""
_PROTOCOL: Final = -0x1000 & 0xFFFFFFFF
"""SKF_AD_OFF + SKF_AD_PROTOCOL."""
_NETWORK: Final = -0x100000
_LOAD_BYTE, _LOAD_HALF, _LOAD_HALF_AT_X = 0x30, 0x28, 0x48
_AND, _SHIFT_LEFT, _TO_X = 0x54, 0x64, 0x07
_JUMP, _EQUAL, _ANY_BIT = 0x05, 0x15, 0x45
_RETURN: Final = 0x06
_IPV4, _IPV6, _VLAN, _TCP, _IPV6_FRAGMENT = 0x0800, 0x86DD, 0x8100, 6, 44
_FRAGMENT_OFFSET: Final = 0x1FFF
_SO_ATTACH_FILTER: Final = 26
_PORTS_ALONE: Final = re.compile(r"tcp port \d{1,5}( or tcp port \d{1,5})*", re.ASCII)


class Instruction(NamedTuple):
    """`struct sock_filter`."""

    code: int
    if_true: int = 0
    if_false: int = 0
    k: int = 0

    def pack(self) -> bytes:
        """Return its 8 bytes, in the machine's byte order."""
        return struct.pack("=HBBI", *self[:3], self.k & 0xFFFFFFFF)


Program = list[Instruction]
KEEP: Final = [Instruction(_RETURN, k=WHOLE_PACKETS)]
DROP: Final = [Instruction(_RETURN, k=0)]


def ports_filter(ports: Sequence[int]) -> Program:
    """Return a program that keeps TCP packets from or to any of the ports, over IPv4 or IPv6; without ports all."""
    if len(ports) > MAX_PORTS:
        raise CaptureError(f"{len(ports)} ports are too many for a filter: at most {MAX_PORTS}")
    protocol = [Instruction(_LOAD_HALF, k=_PROTOCOL)]
    tagged = [Instruction(_LOAD_HALF, k=_NETWORK + 2), *_by_protocol(ports, 4)]
    return [*protocol, *_if_equal(_VLAN, tagged), *_by_protocol(ports, 0)]


def ports_of(expression: str) -> list[int] | None:
    """Return the ports of an expression that names nothing else, as ``tcp port 9092 or tcp port 9093``; None for any
    other: libpcap alone compiles that."""
    words = " ".join(expression.split())
    if not _PORTS_ALONE.fullmatch(words):
        return None
    ports = [int(port) for port in re.findall(r"\d+", words)]
    return ports if max(ports) < 1 << 16 else None


def attach(opened: socket.socket, program: Program) -> None:
    """Let the kernel run a program on what the socket receives from now on, in place of the one before."""
    buffer = ctypes.create_string_buffer(b"".join(instruction.pack() for instruction in program))
    filter_ = struct.pack("HP", len(program), ctypes.addressof(buffer))
    opened.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)


def _by_protocol(ports: Sequence[int], at: int) -> Program:
    """Continue with the protocol loaded and the network header `at` bytes after its regular position."""
    return [*_if_equal(_IPV4, _ipv4(ports, at)), *_if_equal(_IPV6, _ipv6(ports, at)), *DROP]


def _ipv4(ports: Sequence[int], at: int) -> Program:
    return [
        Instruction(_LOAD_BYTE, k=_NETWORK + at + 9),
        *_unless_equal(_TCP, DROP),
        Instruction(_LOAD_HALF, k=_NETWORK + at + 6),
        Instruction(_ANY_BIT, 0, 1, _FRAGMENT_OFFSET),
        *KEEP,
        Instruction(_LOAD_BYTE, k=_NETWORK + at),
        Instruction(_AND, k=0xF),
        Instruction(_SHIFT_LEFT, k=2),
        Instruction(_TO_X),
        Instruction(_LOAD_HALF_AT_X, k=_NETWORK + at),
        *_one_of(ports),
        Instruction(_LOAD_HALF_AT_X, k=_NETWORK + at + 2),
        *_one_of(ports),
        *DROP,
    ]


def _ipv6(ports: Sequence[int], at: int) -> Program:
    return [
        Instruction(_LOAD_BYTE, k=_NETWORK + at + 6),
        *_if_equal(_IPV6_FRAGMENT, KEEP),
        *_unless_equal(_TCP, DROP),
        Instruction(_LOAD_HALF, k=_NETWORK + at + 40),
        *_one_of(ports),
        Instruction(_LOAD_HALF, k=_NETWORK + at + 42),
        *_one_of(ports),
        *DROP,
    ]


def _one_of(ports: Sequence[int]) -> Program:
    if not ports:
        return KEEP
    return [instruction for port in ports for instruction in _if_equal(port, KEEP)]


def _if_equal(value: int, then: Program) -> Program:
    """Conditional jumps reach 255 instructions, unconditional ones any distance."""
    return [Instruction(_EQUAL, 1, 0, value), Instruction(_JUMP, k=len(then)), *then]


def _unless_equal(value: int, then: Program) -> Program:
    return [Instruction(_EQUAL, 0, 1, value), Instruction(_JUMP, k=len(then)), *then]


def compile_expression(expression: str) -> Program | None:
    """Compile a libpcap expression for packets with an Ethernet header, with tcpdump; None if it is not installed.

    Raises `CaptureError` if the expression is invalid."""
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        return None
    command = [tcpdump, "-ddd", "-y", "EN10MB", "-s", str(WHOLE_PACKETS), "--", expression]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if result.returncode:
        lines = result.stderr.decode(errors="replace").strip().splitlines()
        reason = lines[-1].removeprefix("tcpdump: ") if lines else "tcpdump rejects it"
        raise CaptureError(f"filter {expression!r}: {clean(reason)}")
    return [Instruction(*map(int, line.split())) for line in result.stdout.splitlines()[1:]]
