"""The filter that the kernel runs: which packets pass, by the kernel's own word and by an interpreter of ours."""

import ctypes
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture import CaptureError
from dissector.capture.live.bpf import MAX_PORTS, Program, compile_expression, ports_filter, ports_of
from tests.capture.live.loopback import needs_rights
from tests.cases import cases
from tests.needs import needs

PROTOCOL = 0xFFFFF000
NETWORK = 0xFFF00000
Loads = {0x28: 2, 0x30: 1, 0x48: 2}


def run(program: Program, packet: bytes) -> int:
    """What the program returns for an Ethernet packet; by the kernel's rules: a load past the end drops."""
    accumulator = index = at = 0
    while True:
        code, if_true, if_false, k = program[at]
        k &= 0xFFFFFFFF
        at += 1
        if code == 0x06:
            return k
        if code in Loads:
            if k == PROTOCOL:
                accumulator = int.from_bytes(packet[12:14], "big")
                continue
            place = (k - NETWORK + 14 if k >= NETWORK else k) + (index if code == 0x48 else 0)
            if place + Loads[code] > len(packet):
                return 0
            accumulator = int.from_bytes(packet[place : place + Loads[code]], "big")
        elif code == 0x54:
            accumulator &= k
        elif code == 0x64:
            accumulator <<= k
        elif code == 0x07:
            index = accumulator
        elif code == 0xB1:
            index = 4 * (packet[k] & 0xF)
        elif code == 0x05:
            at += k
        elif code in (0x15, 0x45):
            at += if_true if (accumulator == k if code == 0x15 else accumulator & k) else if_false
        else:
            raise AssertionError(f"instruction {code:#x} is unknown")


def ipv4(
    source: int, destination: int, *, protocol: int = 6, fragment: int = 0, options: int = 0, tags: int = 0
) -> bytes:
    head = struct.pack(">BBHHHBBH8x", 0x45 + options, 0, 40, 0, fragment, 64, protocol, 0) + bytes(4 * options)
    return bytes(12) + b"\x81\x00\x00\x05" * tags + b"\x08\x00" + head + struct.pack(">HH16x", source, destination)


def ipv6(source: int, destination: int, *, following: int = 6) -> bytes:
    head = struct.pack(">IHBB32x", 0x60000000, 20, following, 64)
    return bytes(12) + b"\x86\xdd" + head + struct.pack(">HH16x", source, destination)


@given(
    ports=st.lists(st.integers(1, 65535), min_size=1, max_size=MAX_PORTS),
    source=st.integers(1, 65535), destination=st.integers(1, 65535), options=st.integers(0, 10), tags=st.integers(0, 1),
)  # fmt: skip
def test_tcp_of_either_end_passes_by_its_ports(
    ports: list[int], source: int, destination: int, options: int, tags: int
) -> None:
    program = ports_filter(ports)
    wanted = source in ports or destination in ports
    assert bool(run(program, ipv4(source, destination, options=options, tags=tags))) == wanted
    assert bool(run(program, ipv6(source, destination))) == wanted
    assert run(program, ipv4(ports[-1], destination, tags=tags))
    assert run(program, ipv6(source, ports[0]))


def test_other_protocols_are_dropped_and_fragments_pass() -> None:
    program = ports_filter([9092])
    assert not run(program, ipv4(9092, 9092, protocol=17))
    assert not run(program, ipv6(9092, 9092, following=17))
    assert not run(program, bytes(12) + b"\x08\x06" + bytes(40))
    assert not run(program, b"")
    assert run(program, ipv4(1, 1, fragment=0x0001))
    assert run(program, ipv4(9092, 1, fragment=0x2000))
    assert not run(program, ipv4(1, 1, fragment=0x4000)), "don't fragment is no fragment"
    assert run(program, ipv6(1, 1, following=44))


def test_too_many_ports_are_refused() -> None:
    with pytest.raises(CaptureError, match="101 ports are too many"):
        ports_filter(range(1, 102))


@cases(
    "expression, ports",
    [
        ("tcp port 9092", [9092]),
        (" tcp  port 1 or tcp port 65535\n", [1, 65535]),
        ("tcp port 65536", None),
        ("port 9092", None),
        ("tcp port 9092 or", None),
        ("tcp port 9092 and tcp port 9093", None),
        ("tcp port 9092 or udp port 9092", None),
        ("not tcp port 9092", None),
        ("tcp port ٩", None),
        ("", None),
    ],
)
def test_an_expression_of_ports_alone_is_told_from_others(expression: str, ports: list[int] | None) -> None:
    assert ports_of(expression) == ports


@needs_rights
def test_the_kernel_takes_the_longest_program() -> None:
    program = ports_filter(range(1, MAX_PORTS + 1))
    code = b"".join(instruction.pack() for instruction in program)
    buffer = ctypes.create_string_buffer(code)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as raw:
        raw.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", len(program), ctypes.addressof(buffer)))


def test_an_expression_is_compiled_and_a_wrong_one_reported() -> None:
    needs("tcpdump")
    program = compile_expression("tcp port 9092")
    assert program is not None
    assert run(program, ipv4(9092, 1))
    assert not run(program, ipv4(9093, 1))
    with pytest.raises(CaptureError, match="filter 'tcp prt 9092'"):
        compile_expression("tcp prt 9092")
