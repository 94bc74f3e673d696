"""A capture, as programs see it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from dissector.api.arguments import checked_filter
from dissector.api.exchange import Exchange, Packet
from dissector.capture.process_notes import Process
from dissector.capture_session import Capture as Session
from dissector.core.arrays import Int64
from dissector.core.expansion import RUN
from dissector.core.extras import require
from dissector.core.finding import Finding
from dissector.transport.tcp_facts import TcpFacts

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from dissector.analysis.conformance import CheckResult
    from dissector.analysis.outcomes import RuleOutcome
    from dissector.api.records import Record
    from dissector.filter import Filter


@dataclass(frozen=True, slots=True)
class Connection:
    """A TCP connection to a broker.

    >>> capture.connections()[0].software_name
    'apache-kafka-java'
    """

    number: int
    """As in `Exchange.connection`, from 1."""
    client: str
    """The client's address, host:port."""
    server: str
    """The server's address, host:port."""
    software_name: str | None
    """Name of the client's software (KIP-511); None if it did not say."""
    software_version: str | None
    begin_ns: int | None
    """Time of its first packet, nanoseconds since 1970 UTC."""
    closed_ns: int | None
    """Time of its first FIN or RST; None if there was none."""
    offered: Mapping[int, tuple[int, int]]
    """The lowest and the highest version of each API that the server offered, by API key."""
    tcp: TcpFacts | None = None
    """Round trips, bytes each way, losses, zero windows; side 0 is the client."""
    process: Process | None = None
    """The client's process, of a live capture on its machine."""
    server_process: Process | None = None
    """The broker's process, of a live capture on its machine."""


class Capture:
    """One or more captures, read as one in order of time; `dissector.open` returns it.

    Files are read lazily, once; leaving the context closes its files. Exchanges are decoded when they are accessed, and
    remain readable afterwards. Filters are those of `kdissect show -Y`; an invalid one raises `FilterError`.

    >>> with dissector.open("pcaps/java.pcapng") as capture:
    ...     for exchange in capture.exchanges("api == JoinGroup && error"):
    ...         print(exchange.number, exchange["response.error_code"], exchange["group"])
    34 79 java-billing
    """

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise TypeError("a capture is opened with dissector.open, not with Capture")
        RUN.begin()
        self._session = session
        self._is_examined = False
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. Later calls raise `ValueError`, as calls to closed files do."""
        self._is_closed = True
        self._session.close()

    def __len__(self) -> int:
        """Return how many exchanges there are; gaps and other rows count, too."""
        __tracebackhide__ = True
        return len(self._read())

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Exchange]:
        return self.exchanges()

    @overload
    def __getitem__(self, which: int) -> Exchange: ...

    @overload
    def __getitem__(self, which: slice) -> list[Exchange]: ...

    def __getitem__(self, which: int | slice) -> Exchange | list[Exchange]:
        """Return an exchange by its place, from 0, or some. Raises `IndexError`.

        >>> capture[-1].api
        'DeleteTopics'
        """
        __tracebackhide__ = True
        if not isinstance(which, slice) and not hasattr(which, "__index__"):
            raise TypeError(f"capture[{which!r}]: rows have indexes from 0; exchanges() takes a filter")
        try:
            rows = range(len(self))[which]
        except IndexError:
            raise IndexError(f"row {which} of {len(self):,}: indexes start at 0, numbers at 1") from None
        if isinstance(rows, int):
            return Exchange(self._session.exchange(rows), self._packets)
        return [Exchange(each, self._packets) for each in self._session.at(rows)]

    def exchanges(self, filter: str | None = None) -> Iterator[Exchange]:
        """Return all exchanges in order, or those that match a filter. Raises `FilterError` at once, and
        `ValueError` if the capture is closed."""
        __tracebackhide__ = True
        parsed = self._parsed(filter)
        self._check_open()
        return self._exchanges(parsed)

    def records(self, filter: str | None = None) -> "Iterator[Record]":
        """Return the records in the exchanges, or those that match a filter. Every record must satisfy all conditions
        on records, such as ``record.value.id == 17``, and on `topic` and `partition`. Raises `FilterError` at once.

        >>> [record.offset for record in capture.records("api == Fetch && record.key == customer-1")][:3]
        [1, 5, 9]
        """
        __tracebackhide__ = True
        from dissector.analysis.record_list import RecordList
        from dissector.api.records import api_records

        parsed = self._parsed(filter)
        session = self._read()
        if parsed is not None and parsed.reads_findings:
            self._examine()
        found = RecordList(session, parsed).records()
        return api_records(found, lambda row: Exchange(session.exchange(row), self._packets))

    def connections(self) -> list[Connection]:
        """Return the connections that have exchanges."""
        found = self._read()
        numbers = np.unique([found.rows.connection_of(row) for row in range(len(found))]).tolist() if len(found) else []
        return [self._connection(number) for number in numbers if number > 0]

    def findings(self, filter: str | None = None) -> Iterator[tuple[Exchange, Finding]]:
        """Return the findings, each with its exchange, including cross-message findings.

        >>> [finding.code for exchange, finding in capture.findings()]
        ['error-response', 'error-response']
        """
        __tracebackhide__ = True
        found = self.exchanges(filter)
        self._examine()
        return ((exchange, finding) for exchange in found for finding in exchange.findings)

    @property
    def problems(self) -> list[Finding]:
        """Problems with the files themselves, and parts that could not be read."""
        return self._read().problems

    def stats(self, by: str = "api", filter: str | None = None) -> list[dict[str, Any]]:
        """Count exchanges, bytes, errors and latencies (nanoseconds), as `kdissect stats --by` does: by ``api``,
        ``client``, ``connection``, ``topic``, ``partition``, ``version``, ``error``, or any row field. The largest
        group comes first. Raises `ValueError` for another name.

        >>> capture.stats(by="topic")[0]["topic"], capture.stats(by="topic")[0]["bytes_out"]
        ('java-orders', 4782)
        """
        __tracebackhide__ = True
        from dissector.api.counting import counted_by

        parsed = self._parsed(filter)
        session = self._read()
        rows = None if parsed is None else np.concatenate([np.zeros(0, np.int64), *self._rows(parsed)])
        return counted_by(session, by, rows, self._examine)

    def to_arrow(self, table: str = "exchanges", filter: str | None = None) -> "pyarrow.Table":
        """Return exchanges, or ``"records"``, ``"batches"``, ``"partitions"``, ``"groups"``, ``"topics"``,
        ``"brokers"``, ``"findings"`` or ``"connections"``, as an Arrow table with the columns that `kdissect ingest`
        writes; `number` is the number of the exchange. Needs the extra `tables`."""
        __tracebackhide__ = True
        require("to_arrow()", "tables", "pyarrow")
        from dissector.api.arrow import arrow_table

        parsed = self._parsed(filter)
        self._examine()
        return arrow_table(self._session, table, None if parsed is None else list(self._rows(parsed)))

    def to_pandas(self, table: str = "exchanges", filter: str | None = None) -> "pandas.DataFrame":
        """Return the same as a pandas data frame."""
        __tracebackhide__ = True
        require("to_pandas()", "notebook", "pandas", "pyarrow")
        return self.to_arrow(table, filter).to_pandas()

    def to_polars(self, table: str = "exchanges", filter: str | None = None) -> "polars.DataFrame":
        """Return the same as a polars data frame."""
        __tracebackhide__ = True
        require("to_polars()", "notebook", "polars", "pyarrow")
        import polars

        found = polars.from_arrow(self.to_arrow(table, filter))
        assert isinstance(found, polars.DataFrame)
        return found

    def __repr__(self) -> str:
        names = ", ".join(self._session.names)
        read = f": {len(self._session):,} exchanges" if self._session.is_read else ""
        return f"<capture of {names}{read}>"

    def _repr_html_(self) -> str:
        from dissector.api.html import capture_html

        return capture_html(self)

    def baseline(self) -> str:
        """Return the text of a baseline: what the clients do every time (versions, settings, times).

        >>> "acks = " in capture.baseline()
        True
        """
        from dissector.api.rules import baseline_of

        return baseline_of(self._read())

    def held_to(
        self, baseline: str | PathLike[str], *, fail_on: Iterable[str] = (), ignore: Iterable[str] = ()
    ) -> "list[RuleOutcome]":
        """Compare the clients with a baseline file; return one outcome per line. `fail_on` and `ignore` are
        as for `kdissect diff`. Raises `ValueError` if they match no line, or if the file is not a baseline.

        >>> from tempfile import NamedTemporaryFile
        >>> with NamedTemporaryFile("w", suffix=".toml") as file:
        ...     _ = file.write(capture.baseline()), file.flush()
        ...     outcomes = capture.held_to(file.name)
        >>> {outcome.status.value for outcome in outcomes}
        {'held'}
        """
        __tracebackhide__ = True
        from dissector.api.rules import held_to

        return held_to(self._read(), baseline, fail_on, ignore)

    def check(self, *, ignore: Iterable[str] = ()) -> "CheckResult":
        """Check clients and brokers against the rules of the protocol, as `kdissect check` does. `ignore` are codes of
        rules, as ``kdissect check --rules`` lists them. Raises `ValueError` for a code that no rule has.

        A breach has the rule (its code, title and source), the client, the number of the exchange, the field and its
        bytes.

        >>> with dissector.open("pcaps/librdkafka.pcapng") as librdkafka:
        ...     result = librdkafka.check()
        >>> breach = result.breaches[0]
        >>> print(breach.rule.code, breach.exchange, breach.part, breach.words.partition("; ")[0])
        request-trailing-bytes 60 request 3 bytes that Metadata v13 does not have
        >>> capture.check(ignore=["throttle-time"]).breaches
        []
        """
        from dissector.api.rules import check

        return check(self._read(), ignore)

    def _read(self) -> Session:
        """Return the capture, read to its end."""
        __tracebackhide__ = True
        self._check_open()
        if not self._session.is_read:
            for _ in self._session.read():
                pass
        return self._session

    def _check_open(self) -> None:
        __tracebackhide__ = True
        if self._is_closed:
            raise ValueError("the capture is closed: use it inside its with statement")

    def _examine(self) -> None:
        self._read()
        if not self._is_examined:
            for _ in self._session.findings.examine():
                pass
            self._is_examined = True

    def _exchanges(self, parsed: "Filter | None") -> Iterator[Exchange]:
        __tracebackhide__ = True
        for rows in self._rows(parsed):
            found = iter(self._session.at(rows))
            while (each := next(found, None)) is not None:
                yield Exchange(each, self._packets)
                self._check_open()

    def _rows(self, parsed: "Filter | None") -> "Iterator[range | Int64]":
        """Yield the rows that match a filter, or all."""
        session = self._read()
        if parsed is None:
            yield range(len(session))
            return
        if parsed.reads_findings:
            self._examine()
        yield from (found.rows for found in session.select(parsed))

    def _connection(self, number: int) -> Connection:
        known = self._session.connections
        (client, server), software, closed = known.ends(number), known.software(number), known.closed(number)
        facts = known.facts(number)
        return Connection(
            number, client, server, software[0] or None, software[1] or None, known.first_time_ns(number),
            None if closed is None else closed[0], dict(known.advertised_versions(number)),
            *((facts.tcp, facts.process, facts.server_process) if facts is not None else ()),
        )  # fmt: skip

    def _packets(self, row: int) -> list[Packet]:
        from dissector.export.packets import carrying_packets

        found = carrying_packets(self._session, [row], with_handshakes=False)
        return [Packet(each.time_ns, each.data, each.length, each.link_type) for each in found]

    def _parsed(self, filter: str | None) -> "Filter | None":
        """Return a filter. Raises `FilterError`."""
        if filter is None:
            return None
        __tracebackhide__ = True  # pytest shows the line that has the filter, and no frame of ours
        checked_filter(filter)
        from dissector.filter import FilterError, parse

        try:
            return parse(filter, self._session.opener)
        except FilterError as error:
            raise error.with_traceback(None) from None
