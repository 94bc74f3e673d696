"""A lock for parts of a capture that several threads use: one reads and shows rows, another one counts or finds."""

import threading
from types import TracebackType


class OwnLock:
    """A thread may take it again. A checkpoint has none: what is made from it gets a new one."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __reduce__(self) -> tuple[type["OwnLock"], tuple[()]]:
        return OwnLock, ()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()
