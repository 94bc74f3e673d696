"""Names of hosts by address: those that pcapng files carry, and, only if the user asks, those of the system's resolver.

A name of a file takes precedence: it is what the capturing machine knew. The resolver may ask the network, so it is
never called without `resolves`. A lookup runs in a thread of its own; whoever asks waits for all lookups together at
most `patience` seconds, and gets the name the next time if it came later. A screen does not wait at all where it draws.

Invariant: at most `MOST_LOOKUPS` addresses are looked up, `MOST_AT_ONCE` of them at a time.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 3.0
"""Seconds that all lookups of a capture may hold up whoever asks."""
MOST_LOOKUPS: Final = 4096
"""Addresses that are looked up, at most."""
MOST_AT_ONCE: Final = 32
"""Lookups that run at the same time."""


def system_name(address: str) -> str | None:
    """The name of an address by the system's resolver: `/etc/hosts`, DNS, whatever it is set up to ask."""
    import socket  # few captures need it

    try:
        return socket.gethostbyaddr(address)[0]
    except (OSError, UnicodeError):
        return None


class HostNames:
    """The name of an address, or None: called as a function."""

    def __init__(
        self,
        of_files: Callable[[str], str | None],
        *,
        resolves: bool,
        patience: float = PATIENCE,
        resolver: Callable[[str], str | None] = system_name,
    ) -> None:
        self._of_files = of_files
        self.resolves = resolves
        """Whether names may still come from the system's resolver."""
        self._patience = patience
        self._resolver = resolver
        self.spares_main_thread = False
        """Whether the main thread never waits: it draws."""
        self._found: dict[str, str | None] = {}
        self._running: dict[str, threading.Thread] = {}
        self._lock = threading.Lock()

    def __call__(self, address: str) -> str | None:
        return self._of_files(address) or (self._resolved(address) if self.resolves else None)

    def _resolved(self, address: str) -> str | None:
        with self._lock:
            if address in self._found or len(self._found) >= MOST_LOOKUPS:
                return self._found.get(address)
            thread = self._running.get(address)
            if thread is None and len(self._running) < MOST_AT_ONCE:
                thread = self._running[address] = threading.Thread(target=self._look_up, args=(address,), daemon=True)
                thread.start()
        is_spared = self.spares_main_thread and threading.current_thread() is threading.main_thread()
        if thread is not None and self._patience > 0 and not is_spared:
            before = time.monotonic()
            thread.join(self._patience)
            self._patience -= time.monotonic() - before
        return self._found.get(address)

    def _look_up(self, address: str) -> None:
        name = self._resolver(address)
        with self._lock:
            self._found[address] = name
            self._running.pop(address, None)
