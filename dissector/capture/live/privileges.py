"""The rights that opening a packet socket takes, and how they are given up before a packet is read.

A process that root or a file capability has given rights becomes the user who called sudo, or else nobody, with that
user's groups, no capability in any set and none that it could gain: `capabilities(7)`, PR_SET_NO_NEW_PRIVS of
`prctl(2)`. tcpdump's ``-Z`` does the same. Linux only: elsewhere nothing is held and nothing given up.

Invariants:
  * capabilities belong to threads: whoever gives them up has no other thread yet;
  * what can't be given up is an error, but for the user: in some containers root can't become another one, and goes on
    as a root without capabilities, which its caller says.
"""

import ctypes
import os
import pwd
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from dissector.capture.errors import CaptureError
from dissector.capture.live.interfaces import LINUX

NET_ADMIN: Final = 12
NET_RAW: Final = 13
_NOBODY: Final = 65_534
_ID: Final = re.compile(r"[1-9]\d{0,9}", re.ASCII)
_LARGEST_ID: Final = (1 << 32) - 2
_VERSION_3: Final = 0x2008_0522
"""_LINUX_CAPABILITY_VERSION_3: two words for each set."""
_CAPBSET_READ, _CAPBSET_DROP, _KEEPCAPS, _SET_NO_NEW_PRIVS, _GET_NO_NEW_PRIVS, _AMBIENT = 23, 24, 8, 38, 39, 47
_AMBIENT_RAISE, _AMBIENT_CLEAR_ALL = 2, 4
_LAST_CAPABILITY: Final = Path("/proc/sys/kernel/cap_last_cap")
_MOST_CAPABILITIES: Final = 64
_GROUP_ONLY: Final = 0o011
"""Modes of execution: of the group, of others."""


class User(NamedTuple):
    """Who goes on after root."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def rights_are_held() -> bool:
    """Return whether this process is root or has any capability."""
    return LINUX and (os.geteuid() == 0 or any(_capabilities()))


def use_rights() -> None:
    """Make effective what this thread is permitted, and let it inherit no more than before. A program with the file
    capability ``cap_net_raw+p`` starts everywhere and then has to ask for it, as here; the kernel refuses to start one
    with ``+ep`` in a container without capabilities."""
    if found := _capabilities():
        low, high = found[:3], found[3:]
        data = (ctypes.c_uint32 * 6)(low[1], *low[1:], high[1], *high[1:])
        ctypes.CDLL(None).capset((ctypes.c_uint32 * 2)(_VERSION_3, 0), data)  # refused: as without the capability


def why_nobody_captures() -> str:
    """Return why neither root nor file capabilities let a program capture, as in many containers; empty if they do."""
    if not LINUX:
        return ""
    libc = ctypes.CDLL(None)
    if libc.prctl(_CAPBSET_READ, NET_RAW, 0, 0, 0) == 0:
        return "nothing here may have CAP_NET_RAW; a container gets it with --cap-add=NET_RAW"
    if os.geteuid() != 0 and libc.prctl(_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1:
        return "no-new-privileges is set, so no program gains rights; capture as root, or without it"
    return ""


def user_to_become() -> User | None:
    """Return the user who goes on: who called sudo, else nobody. None for who is not root and stays who it is, and
    where the system lets root become nobody else."""
    if not LINUX or os.geteuid() != 0:
        return None
    uid, gid = (_id(os.environ.get(name, "")) for name in ("SUDO_UID", "SUDO_GID"))
    user = _nobody() if uid is None else _user(uid, gid)
    try:
        with acting_as(user):
            return user
    except OSError:
        return None


def sudo_caller() -> User | None:
    """Return the user who called sudo; None where this is not root, or root did not come by sudo."""
    uid, gid = (_id(os.environ.get(name, "")) for name in ("SUDO_UID", "SUDO_GID"))
    return _user(uid, gid) if os.geteuid() == 0 and uid is not None else None


def become_user(user: User) -> None:
    """Become a user for good, as `sudo -u` does: with the rights that this user has, which setuid programs may extend.
    Raises `OSError`."""
    os.setgroups(user.groups)
    os.setgid(user.gid)
    os.setuid(user.uid)


@contextmanager
def acting_as(user: User | None) -> Iterator[None]:
    """Have the file access of a user for a while, as root; for None nothing changes. Raises `OSError`."""
    if user is None:
        yield
        return
    groups, gid = os.getgroups(), os.getegid()
    try:
        os.setgroups(user.groups)
        os.setegid(user.gid)
        os.seteuid(user.uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(gid)
        with suppress(PermissionError):  # of a root who could not set them before either
            os.setgroups(groups)


def give_up_rights(user: User | None, kept: Collection[int] = ()) -> None:
    """Become a user, or stay who this is, and lose all capabilities for good, but for those to be `kept`, which the
    program that is executed next has as well. Raises `CaptureError` if the system refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(_last_capability() + 1):
        if number not in kept:  # it takes a capability, too; without it, no new ones can be gained below
            libc.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    if kept:
        libc.prctl(_KEEPCAPS, 1, 0, 0, 0)
    if user is not None:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    _set_capabilities(libc, kept)
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in kept:
        libc.prctl(_AMBIENT, _AMBIENT_RAISE, number, 0, 0)
    libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if not kept and any(_capabilities()):
        raise CaptureError("can't drop the rights to capture: capabilities remain")
    if libc.prctl(_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
        raise CaptureError("can't drop the rights to capture: this system has no NO_NEW_PRIVS")


def capture_as(user: User, program: str) -> None:
    """Become a user who may do nothing but capture, and execute a program that its own group may execute: in a child
    process, before that."""
    status = Path(program).stat()
    groups = user.groups
    if status.st_mode & _GROUP_ONLY == 0o010 and status.st_gid:  # as Debian installs dumpcap
        groups = (*groups, status.st_gid)
    permitted = _capabilities()[1::3]
    kept = [number for number in (NET_ADMIN, NET_RAW) if permitted[number // 32] >> number % 32 & 1]
    give_up_rights(user._replace(groups=groups), kept)


def _id(text: str) -> int | None:
    return int(text) if _ID.fullmatch(text) and int(text) <= _LARGEST_ID else None


def _user(uid: int, gid: int | None) -> User:
    try:
        known = pwd.getpwuid(uid)
    except KeyError:  # of a directory that does not answer, or gone
        group = uid if gid is None else gid
        return User(f"user {uid}", uid, group, (group,), "/")
    group = known.pw_gid if gid is None else gid
    return User(known.pw_name, uid, group, tuple(os.getgrouplist(known.pw_name, group)), known.pw_dir)


def _nobody() -> User:
    try:
        known = pwd.getpwnam("nobody")
    except KeyError:
        return User("nobody", _NOBODY, _NOBODY, (_NOBODY,), "/")
    return User("nobody", known.pw_uid, known.pw_gid, (known.pw_gid,), known.pw_dir)


def _last_capability() -> int:
    try:
        return int(_LAST_CAPABILITY.read_text())
    except (OSError, ValueError):  # without /proc: the kernel refuses numbers that it does not have
        return _MOST_CAPABILITIES - 1


def _capabilities() -> tuple[int, ...]:
    """Return this thread's effective, permitted and inheritable capabilities, of low numbers and of high ones."""
    header, data = (ctypes.c_uint32 * 2)(_VERSION_3, 0), (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None).capget(header, data):
        return ()
    return tuple(data)


def _set_capabilities(libc: ctypes.CDLL, kept: Collection[int]) -> None:
    """Set the three sets of this thread. Raises `CaptureError`."""
    words = [sum(1 << number % 32 for number in kept if number // 32 == word) for word in (0, 1)]
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(*(word for word in words for _ in range(3)))
    if libc.capset(header, data):
        reason = os.strerror(ctypes.get_errno()).lower()
        raise CaptureError(f"the rights to capture can't be given up: {reason}")
