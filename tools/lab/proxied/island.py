"""A network namespace whose only way out is the address of the proxy (Linux, as root)."""

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Final

from tools.lab.tools import MissingToolError

NAME: Final = "kd-island"
PROXY_HOST: Final = "10.77.51.1"
_CLIENT: Final = "10.77.51.2"
_SETUP: Final = f"""
ip netns add {NAME}
ip link add kd-proxy type veth peer name kd-client netns {NAME}
ip addr add {PROXY_HOST}/30 dev kd-proxy
ip link set kd-proxy up
ip -n {NAME} addr add {_CLIENT}/30 dev kd-client
ip -n {NAME} link set kd-client up
ip -n {NAME} link set lo up
"""


@contextlib.contextmanager
def island() -> Iterator[list[str]]:
    """Make it; what to put before a command that runs in it. It is removed at the end; one that somebody else has made
    stays."""
    first, *others = _SETUP.strip().splitlines()
    _make(first)
    try:
        for line in others:
            _make(line)
        yield ["ip", "netns", "exec", NAME]
    finally:
        for words in (["ip", "netns", "del", NAME], ["ip", "link", "del", "kd-proxy"]):
            subprocess.run(words, capture_output=True, check=False)


def _make(line: str) -> None:
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingToolError(f"no namespace for clients: {line}: {done.stderr.strip()}")


def loopback_packets(prefix: list[str]) -> int:
    """How many packets there were on the loopback interface there, where nobody listens: brokers advertise addresses of
    it."""
    command = [*prefix, "cat", "/sys/class/net/lo/statistics/tx_packets"]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def reaches(prefix: list[str], port: int) -> bool:
    """Whether a client there comes to a port of a broker, at the address that the broker advertises."""
    code = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
    return subprocess.run([*prefix, "python3", "-c", code], capture_output=True, check=False).returncode == 0
