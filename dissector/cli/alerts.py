"""What `kdissect ingest` tells others of the rows that it has written: an exit code if some match a filter, and counts
to an address of HTTP.

Invariants:
  * only what was written is counted, whatever else is in the tables;
  * what is sent are counts, the folder and the filter: no word from the wire. What is printed of the address is its
    host: the rest, as that of a webhook, may be a secret.
"""

import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from dissector.capture import CaptureError
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.options import parse_filter
from dissector.cli.tables import open_tables
from dissector.core import limits
from dissector.core.json_text import dumps
from dissector.core.text import clean, counted
from dissector.core.version import version
from dissector.records.values.http_deadline import Deadline, host_and_login

if TYPE_CHECKING:
    from dissector.filter import Filter

Counts = dict[str, int]


class Alerts:
    """Tells of one run, or of each micro-batch of it."""

    def __init__(self, out: str, fail_on: str | None, notify: str | None, *, bodies: bool) -> None:
        """Raises `UsageError` for a filter or an address that is none, and for a filter that needs bodies where none
        are kept."""
        self._out = out
        self._filter = parse_filter(fail_on, "--fail-on")
        self._webhook = None if notify is None else _Webhook(notify)
        if self._filter is not None and not bodies:
            _check_needs_no_bodies(self._filter)

    def tell(self, written: Sequence[str], counts: Counts) -> int:
        """Count the rows that meet one of some conditions in SQL and match, print that, and send the counts with it.
        Return the exit code: 1 if rows match, 2 if that can't be determined."""
        code, posted = 0, {"tables": self._out, **counts}
        if self._filter is not None:
            try:
                matching, rows = self._counted(self._filter, written)
            except CaptureError as error:
                return print_error(str(error))
            words = f"--fail-on {self._filter.text}: {matching:,} of {counted(rows, 'row')}"
            if matching:
                print_error(f"{words} {'matches' if matching == 1 else 'match'}")
                code = NEGATIVE
            posted |= {"filter": self._filter.text, "rows": rows, "matching": matching}
        if self._webhook is not None and (failure := self._webhook.post(dumps(posted))):
            return print_error(f"--notify {failure}")
        return code

    def _counted(self, row_filter: "Filter", written: Sequence[str]) -> tuple[int, int]:
        """Return how many of the rows match, and how many there are."""
        if not written:
            return 0, 0
        with open_tables(self._out, " OR ".join(f"({each})" for each in written)) as tables:
            return tables.counted(row_filter), tables.counted()


def _check_needs_no_bodies(row_filter: "Filter") -> None:
    from dissector.tables.filter_sql import push_down

    pushed = push_down(row_filter, 0, in_columns=False)  # a number that is missing in its column is in the body
    if pushed.uses_bodies or not pushed.is_exact:
        raise UsageError(f"--fail-on {row_filter.text} needs bodies: leave out --no-bodies")


class _Webhook:
    """An address of HTTP that takes JSON."""

    def __init__(self, url: str) -> None:
        """Raises `UsageError`. A user and a password may stand in it."""
        parts = urlsplit(url)
        try:
            self._host, self._authorization = host_and_login(parts)
        except ValueError as error:
            raise UsageError(f"--notify: {error}: http://host:port/path") from None
        self._url = urlunsplit((parts.scheme, self._host, parts.path, parts.query, ""))

    def post(self, content: bytes) -> str:
        """Post JSON. Return in words, with the host, why it has not arrived; nothing if it has."""
        headers = {"Content-Type": "application/json", "User-Agent": f"kdissect/{version('kafka-dissector')}"}
        request = urllib.request.Request(self._url, content, headers)
        if self._authorization:
            request.add_unredirected_header("Authorization", self._authorization)
        with Deadline(limits.DEFAULT.notify_seconds, keeps_host=True) as deadline:
            try:
                with deadline.open(request) as answer:
                    return "" if answer.url == self._url else f"{self._host} redirects: name where to"
            except urllib.error.HTTPError as error:
                with error:
                    return f"{self._host} answers {error.code} {clean(error.reason)}"[:_MOST_WORDS]
            except (OSError, HTTPException, ValueError) as error:
                return f"{self._host}: {deadline.reason(error)}"[:_MOST_WORDS]


_MOST_WORDS: Final = 200
