"""The dialogs that ask what to compare with: another capture, or another client or connection of this one. The latter
reads in a thread who sent what.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from textual import work
from textual.worker import get_current_worker

from dissector.analysis.diff import DiffSide
from dissector.analysis.diff.peers import Peer, PeerIndex, PeerSide
from dissector.capture_session import Capture
from dissector.core.files import is_file
from dissector.core.text import clean, counted, shortened
from tui.recents import recent_captures
from tui.screens.offer_dialog import DialogOffer, OfferDialog
from tui.threads import Stopped, call_on_ui

CAPTURES: Final = ("*.pcap*", "*.cap*")
MOST_OFFERED: Final = 100
LONGEST_NAME: Final = 60
"""Characters of a client id or of a software."""
HINT: Final = "a client id, a software or C4; the most alike first"
NOBODY: Final = "nobody sends requests on this connection"
ALONE: Final = "there is no other client or connection"


class CompareDialog(OfferDialog):
    """Returns the path of a capture, typed or chosen; None if cancelled."""

    def __init__(self, paths: Sequence[str]) -> None:
        """The paths to suggest."""
        super().__init__("Compare with capture", "a path, or part of a name below", [*map(_offer, paths)])

    def submit(self, typed: str) -> None:
        """Take what was typed, if it is a file or if no suggestion contains it; else the first suggestion."""
        path = str(Path(typed).expanduser())
        if not typed:
            self.dismiss(None)
        elif self.offers and not is_file(path):
            super().submit(typed)
        else:
            self.dismiss(path)


def _offer(path: str) -> DialogOffer:
    one = Path(path)
    return DialogOffer(path, clean(one.name), clean(str(one.parent)), path)


def offered(path: str) -> list[str]:
    """Return captures to compare with: those in the same folder, then recent ones."""
    one = Path(path)
    try:
        there = (each for pattern in CAPTURES for each in one.parent.glob(pattern))
        beside = sorted(str(each) for each in there if not each.name.startswith("."))
    except OSError:
        beside = []
    lately = [path for paths in recent_captures() for path in paths]
    found = dict.fromkeys((*beside[:MOST_OFFERED], *lately))
    return [each for each in found if Path(each) != one]


class PeersDialog(OfferDialog):
    """Returns the id of an offer: `sides` has the sides to compare."""

    DEFAULT_CSS = """
    PeersDialog #ask { width: 116; }
    PeersDialog #ask-offers { text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, capture: Capture, row: int, stop: int | None) -> None:
        """Compare who sent `row`, up to the row `stop`; None if the capture is read to its end."""
        super().__init__("Compare with", HINT, [])
        self._capture = capture
        self._row = row
        self._stop = stop
        self._pairs: dict[str, tuple[Peer, Peer]] = {}
        self._is_awaited = False
        """Whether Enter was pressed before there was anything to take."""

    def on_mount(self) -> None:
        self._read()

    def submit(self, typed: str) -> None:
        """Take the first offer, also if it comes later than the key."""
        self._is_awaited = not self._pairs
        super().submit(typed)

    def sides(self, chosen: str) -> tuple[DiffSide, DiffSide]:
        """Return the sides that an offer stands for."""
        a, b = self._pairs[chosen]
        names = [_name(each) for each in (a, b)]
        if names[0] == names[1]:
            names = [" ".join(filter(None, (_name(each), each.software))) for each in (a, b)]
        since = "" if self._stop is None else f", rows to {self._stop:,}"
        first, second = (
            PeerSide(self._capture, name + since, stop=self._stop, peer=peer)
            for name, peer in zip(names, (a, b), strict=True)
        )
        return first, second

    @work(thread=True, exclusive=True, group="peers")
    def _read(self) -> None:
        worker = get_current_worker()
        stop = len(self._capture) if self._stop is None else self._stop
        reported = -1

        def watch(row: int) -> None:
            nonlocal reported
            if worker.is_cancelled:
                raise Stopped
            share = 100 * row // max(1, stop)
            if share >= reported + 5:
                reported = share
                call_on_ui(self, self._say, f"Compare with · reading {share}%")

        try:
            index = PeerIndex(self._capture, stop, watch)
            client, connection = index.client_of(self._row), index.connection_of(self._row)
            if client is None or connection is None:
                call_on_ui(self, self._end, NOBODY)
                return
            found = [(client, *index.clients_like(client)), (connection, *index.connections_like(connection))]
        except Stopped:
            return
        call_on_ui(self, self._show, found)

    def _say(self, words: str) -> None:
        self.query_one("#ask").border_title = words.replace("[", "\\[")

    def _end(self, words: str) -> None:
        self.notify(words, timeout=3, markup=False)
        self.dismiss(None)

    def _show(self, found: list[tuple[Peer, list[Peer], int]]) -> None:
        offers = []
        for mine, others, _ in found:
            for other in others:
                self._pairs[str(len(self._pairs))] = (mine, other)
                offers.append(self._offer(str(len(self._pairs) - 1), mine, other))
        if not offers:
            self._end(ALONE)
            return
        mine = found[0][0]
        more = sum(count - len(others) for _, others, count in found)
        self._say(f"Compare {_shown(_name(mine))} with" + (f" · {more:,} less similar are not listed" if more else ""))
        self.offer(offers)
        if self._is_awaited:
            self.submit("")

    def _offer(self, id: str, mine: Peer, peer: Peer) -> DialogOffer:
        name = _shown(_name(peer))
        if peer.is_connection:
            name = f"C{mine.connections[0]} ⇄ {name}"
            client, server = self._capture.connections.ends(int(peer.connections[0]))
            what = f"{client} → {server}"
        else:
            what = peer.software
        likeness = [f"{peer.common} of {counted(peer.either, 'API')}", counted(peer.exchanges, "exchange")]
        words = (
            [*likeness, _shown(what)] if peer.is_connection
            else [_shown(what), *likeness, counted(len(peer.connections), "connection")]
        )  # fmt: skip
        return DialogOffer(id, name, " · ".join(filter(None, words)), f"{_name(peer)} {peer.software} {what}")


def _name(peer: Peer) -> str:
    """Return what a side is called: as on the wire."""
    client = peer.client_id or peer.software or "without a client id"
    return f"C{peer.connections[0]} {client}" if peer.is_connection else client


def _shown(text: str) -> str:
    return clean(shortened(text, LONGEST_NAME))
