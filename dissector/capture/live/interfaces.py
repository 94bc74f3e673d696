"""The network interfaces of this machine: their names, link types, and whether they are up.

Names come from the system (`if_nameindex`), the rest from `/sys/class/net` on Linux.
"""

import socket
import sys
from pathlib import Path
from typing import Final, NamedTuple

ANY: Final = "any"
"""All interfaces at once."""
LINUX: Final = sys.platform == "linux"
LOOPBACK: Final = "lo" if LINUX else "lo0"
_SYSTEM: Final = Path("/sys/class/net")
_UP: Final = 1
"""IFF_UP of `net/if.h`."""
_LISTEN: Final = "0A"
_ARPHRD_ETHER: Final = 1
_ARPHRD_LOOPBACK: Final = 772
"""Linux gives packets on loopback an Ethernet header, too."""


class Interface(NamedTuple):
    """One interface. `number` 0 stands for all of them."""

    name: str
    number: int
    up: bool
    ethernet: bool
    """Whether packets begin with an Ethernet header. Other link headers are not read."""
    loopback: bool


def interfaces() -> list[Interface]:
    """Return all interfaces; on Linux `any` as well."""
    found = [_interface(name, number) for number, name in socket.if_nameindex()]
    return [*found, Interface(ANY, 0, up=True, ethernet=False, loopback=False)] if LINUX else found


def interface(name: str) -> Interface | None:
    """Return the interface with a name; None if there is none."""
    return next((each for each in interfaces() if each.name == name), None)


def _interface(name: str, number: int) -> Interface:
    kind, flags = _number(name, "type", 10), _number(name, "flags", 16)
    loopback = kind == _ARPHRD_LOOPBACK or name == LOOPBACK
    return Interface(
        name,
        number,
        up=flags is None or bool(flags & _UP),
        ethernet=kind in (_ARPHRD_ETHER, _ARPHRD_LOOPBACK),
        loopback=loopback,
    )


def _number(name: str, attribute: str, base: int) -> int | None:
    """Return an attribute of an interface; None if the system does not have it."""
    try:
        return int((_SYSTEM / name / attribute).read_text(), base)
    except (OSError, ValueError):
        return None


def listening_ports() -> set[int] | None:
    """Return the TCP ports that programs on this machine listen on; None if the system does not list them.

    Linux's `/proc/net/tcp` has a line for each socket: its local end as ``ADDRESS:PORT`` in hex, and its state.
    """
    found: set[int] = set()
    try:
        for table in ("tcp", "tcp6"):
            lines = (line.split() for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:])
            found |= {int(words[1].rpartition(":")[2], 16) for words in lines if words[3] == _LISTEN}
    except (OSError, ValueError, IndexError):
        return None
    return found
