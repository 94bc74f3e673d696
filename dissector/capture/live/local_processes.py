"""Which processes of this machine have the ends of TCP connections, by psutil.

A lookup lists the sockets of all processes: tens of milliseconds on a busy machine, however many connections are asked
for. So whoever asks does it seldom, and for all new connections at once. Without root only the user's own processes are
seen. Sockets of another network namespace are not.
"""

import re
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final

from dissector.capture.process_notes import Process

_CONTAINER: Final = re.compile(r"[0-9a-f]{64}")
ID_LENGTH: Final = 12
"""Characters of a container's id, as programs print it."""
Pair = tuple[str, str]
"""An end and its peer, `host:port` each."""


def processes_of(pairs: Collection[Pair]) -> dict[Pair, Process]:
    """The processes of these ends, as far as they are found."""
    import psutil  # only live captures need it

    found: dict[Pair, Process] = {}
    known: dict[int, Process | None] = {}
    try:
        sockets = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return {}
    for each in sockets:
        if not each.raddr or each.pid is None:
            continue
        pair = _text(*each.laddr[:2]), _text(*each.raddr[:2])
        if pair in pairs:
            if each.pid not in known:
                known[each.pid] = _process(each.pid)
            if (process := known[each.pid]) is not None:
                found[pair] = process
    return found


def _text(host: str, port: int) -> str:
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return f"[{address}]:{port}" if isinstance(address, IPv6Address) else f"{address}:{port}"


def _process(pid: int) -> Process | None:
    import psutil

    try:
        return Process(psutil.Process(pid).name(), pid, _container(pid))
    except (psutil.Error, OSError):
        return None


def _container(pid: int) -> str:
    """The id of the container of a process: the last one in the path of its control group."""
    try:
        ids = _CONTAINER.findall(Path(f"/proc/{pid}/cgroup").read_text())
    except (OSError, ValueError):
        return ""
    return ids[-1][:ID_LENGTH] if ids else ""
