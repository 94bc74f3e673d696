"""What came of clients through the proxy, kept for the page."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

FILE: Final = Path(__file__).with_name("results.json")
_LOCK: Final = threading.Lock()


class Outcome(NamedTuple):
    """Of one client, one way."""

    title: str
    version: str
    equal: int = 0
    """Exchanges that both the recording and the brokers' logs have, equal in every value."""
    values: int = 0
    """Values that were compared."""
    missing: Sequence[str] = ()
    """Exchanges that only the brokers have."""
    over: Sequence[str] = ()
    """Answered exchanges that only the recording has."""
    acknowledged: int = 0
    """Records whose offset the client was told."""
    lost: int = 0
    """Of these, those that the topic does not have."""
    elsewhere: int = 0
    """Records that were accepted without an offset."""
    failure: str = ""
    """What the client said if it failed."""
    said: Sequence[str] = ()
    """What the proxy said."""
    refusal: str = ""
    """Why it did not run."""

    @property
    def is_good(self) -> bool:
        """Whether nothing differs and nothing is lost."""
        return bool(self.equal) and not (self.missing or self.over or self.lost or self.failure)

    @property
    def words(self) -> str:
        """One line."""
        return (
            f"{self.equal:5} exchanges equal ({self.values:,} values), {len(self.missing)} missing, {len(self.over)}"
            f" only recorded; {self.acknowledged} records acknowledged, {self.lost} lost, {self.elsewhere} without an"
            " offset"
        )

    def details(self, most: int) -> list[str]:
        """What is wrong, so many lines of each kind."""
        return [line for line in (self.failure, *self.said[:most], *self.missing[:most], *self.over[:most]) if line]


def keep(brokers: int, way: str, client: str, found: Outcome) -> None:
    """Add it to the file, in place of what was there before."""
    with _LOCK:
        results = read_results()
        kept = found._replace(said=(), over=found.over[:9], missing=found.missing[:9])._asdict()
        results.setdefault(f"{brokers}", {}).setdefault(way, {})[client] = kept
        FILE.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def read_results() -> dict[str, Any]:
    """Return what was kept: by the number of brokers, the way and the client."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}
