"""Options that commands share: each is declared here once, and `command.py` makes it one of a command.

This module doesn't import typer: what commands do can be imported without the command line.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

from dissector.cli import completing
from dissector.cli.errors import UsageError
from dissector.core.text import clean, counted

if TYPE_CHECKING:  # imported on use: without a filter its parser is not needed
    from dissector.capture_session import Capture
    from dissector.detection.decode_as import DecodeAs
    from dissector.filter import Filter
    from dissector.records.values.opener import ValueOpener

WIDTH: Final = 72
"""Characters of a bad filter that are shown around the error."""
KEY_LOG_VARIABLE: Final = "KDISSECT_KEYLOG"


class Option:
    """A declared option: names and settings, as `typer.Option` takes them."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names = names
        self.settings = settings


@dataclass(frozen=True)
class CaptureOptions:
    """How captures are read."""

    response: Annotated[
        str | None,
        Option(
            metavar="API:VERSION",
            autocompletion=completing.response,
            help="Decode responses without a request as this API and version: Metadata:12.",
        ),
    ] = None
    port: Annotated[
        list[int] | None,
        Option("--port", metavar="PORT", min=0, max=65535, help="Treat this server port as Kafka; may be repeated."),
    ] = None
    decode_as: Annotated[
        list[str] | None,
        Option(
            "-d", "--decode-as", metavar="SELECTOR,PROTOCOL",
            help="Treat connections as kafka, tls or none, whatever their bytes look like: tcp.port==19092,kafka for a"
            " port, 10.0.0.5:19092,tls for a broker, CLIENT-BROKER,none for one connection; may be repeated.",
        ),
    ] = None  # fmt: skip
    show_secrets: Annotated[
        bool,
        Option("--show-secrets", help="Do not mask passwords, tokens, keys, and bytes that may hold one."),
    ] = False

    keylog: Annotated[
        list[str] | None,
        Option(
            "--keylog", metavar="FILE", envvar=KEY_LOG_VARIABLE,
            help="Decrypt TLS with this key log (SSLKEYLOGFILE); may be repeated.",
        ),
    ] = None  # fmt: skip

    resolve: Annotated[
        bool,
        Option(
            "--resolve",
            help="Resolve IP addresses to host names (fields host, client.host, server.host), which may cause DNS "
            "queries.",
        ),
    ] = False

    schemas: Annotated[
        str | None,
        Option(
            "--schemas", metavar="DIR|URL",
            help="Decode Avro and Protobuf records with schemas from a folder (7.avsc, orders-value.proto) or a "
            "schema registry.",
        ),
    ] = None  # fmt: skip

    @cached_property
    def opener(self) -> "ValueOpener":
        """Opens keys and values of records. Raises `UsageError`."""
        if self.schemas is None:
            from dissector.records.record import PLAIN_OPENER

            return PLAIN_OPENER
        from dissector.records.values.schemas import SchemaLocationError, opener_with

        try:
            return opener_with(self.schemas)
        except SchemaLocationError as error:
            raise UsageError(f"--schemas: {error}") from None

    @property
    def chosen_opener(self) -> "ValueOpener | None":
        """The opener with the schemas that are named; None if none are. Raises `UsageError`."""
        return None if self.schemas is None else self.opener

    @property
    def is_set(self) -> bool:
        """Whether any option is given: a key log of the environment is for whatever needs one."""
        has_key_log = self.keylog is not None and self.keylog != os.environ.get(KEY_LOG_VARIABLE, "").split()
        return has_key_log or replace(self, keylog=None) != CaptureOptions()

    @property
    def arguments(self) -> list[str]:
        """These options as another process takes them."""
        found = []
        for each in fields(self):
            option = get_args(each.type)[1]
            name = option.names[-1] if option.names else f"--{each.name.replace('_', '-')}"
            value = getattr(self, each.name)
            values = value if isinstance(value, list) else [] if value in (None, False) else [value]
            found += [name if item is True else f"{name}={item}" for item in values]
        return found

    @property
    def key_logs(self) -> tuple[str, ...]:
        """Files with the secrets of TLS connections."""
        return tuple(self.keylog or ())

    @property
    def ports(self) -> frozenset[int]:
        """Server ports to treat as Kafka."""
        return frozenset(self.port or ())

    @cached_property
    def choices(self) -> "tuple[DecodeAs, ...]":
        """What the user says that connections are. Raises `UsageError`."""
        if not self.decode_as:
            return ()
        from dissector.detection.decode_as import DecodeAsError, parse_decode_as

        found = []
        for text in self.decode_as:
            try:
                found.append(parse_decode_as(text))
            except DecodeAsError as error:
                raise UsageError(f"--decode-as {clean(text)}: {error}") from None
        return tuple(found)

    @property
    def response_to(self) -> tuple[int, int] | None:
        """API key and version of responses whose request is missing. Raises `UsageError`."""
        if self.response is None:
            return None
        from dissector.exchange.from_json import near_api
        from dissector.protocol.schema.loader import api_named

        name, _, number = self.response.partition(":")
        known = api_named(name)
        if known is None:
            raise UsageError(f"--response {self.response}: no API is called {name!r}{near_api(name)}")
        if not number.isascii() or not number.isdecimal() or not known.versions.contains(int(number)):
            raise UsageError(f"--response {self.response}: {known.name} has versions {known.versions}")
        return known.key, int(number)

    def open(self, files: Sequence[str]) -> "Capture":
        """Open captures. Raises `UsageError`, `CaptureError`."""
        from dissector.capture_session import Capture

        return Capture(
            files, response_to=self.response_to, ports=self.ports, decode_as=self.choices, key_logs=self.key_logs,
            show_secrets=self.show_secrets, resolves=self.resolve,
            opener=self.chosen_opener,
        )  # fmt: skip


@dataclass(frozen=True)
class VerdictOptions:
    """What is judged of a capture at its end, and where reports go."""

    check: Annotated[
        bool,
        Option("--check", help="At the end, check what was captured against the protocol's rules, as kdissect check."),
    ] = False
    baseline: Annotated[
        str | None,
        Option(
            "--baseline", metavar="FILE", help="At the end, compare the client with this baseline, as kdissect diff."
        ),
    ] = None
    fail_on: Annotated[
        str | None,
        Option("--fail-on", metavar="FILTER", help="Exit with 1 if an exchange matches: 'error && api == Produce'."),
    ] = None
    ignore: Annotated[
        str | None,
        Option(
            "--ignore", metavar="NAMES",
            help="Ignore these rules of --check and lines of --baseline: throttle-time,compression.",
        ),
    ] = None  # fmt: skip
    junit: Annotated[str, Option("--junit", metavar="FILE", help="Write the report as JUnit XML.")] = ""
    sarif: Annotated[str, Option("--sarif", metavar="FILE", help="Write the report as SARIF.")] = ""
    summary: Annotated[
        str,
        Option("--summary", metavar="FILE", help='Append the report as Markdown: "$GITHUB_STEP_SUMMARY".'),
    ] = ""  # fmt: skip


@dataclass(frozen=True)
class CsvOptions:
    """How CSV is written."""

    escape_formulas: Annotated[
        bool,
        Option(
            "--escape-formulas",
            help="In CSV, put an apostrophe before cells that a spreadsheet takes for formulas (=1+1, @x).",
        ),
    ] = False


@dataclass(frozen=True)
class BrokerTls:
    """How to speak TLS to brokers. Files are PEM."""

    tls: Annotated[bool, Option("--tls", help="Use TLS to the brokers.")] = False
    ca: Annotated[str, Option("--ca", metavar="FILE", help="Trust brokers with certificates of this PEM file.")] = ""
    certificate: Annotated[
        str, Option("--cert", metavar="FILE", help="Present this certificate (PEM) to brokers, for mutual TLS.")
    ] = ""
    key: Annotated[str, Option(metavar="FILE", help="The key of --cert, if it is in another file.")] = ""
    server_name: Annotated[str, Option(metavar="NAME", help="Expect this name in the brokers' certificates.")] = ""
    insecure: Annotated[bool, Option("--insecure", help="Accept any certificate of a broker.")] = False


@dataclass(frozen=True)
class Cluster:
    """Where Spark runs: a master, a Spark Connect server, or all cores of this machine. Raises `UsageError`."""

    master: Annotated[str | None, Option(metavar="URL", help="Spark master; by default all cores of this machine.")] = (
        None
    )
    remote: Annotated[str | None, Option(metavar="URL", help="Spark Connect server: sc://HOST:PORT.")] = None
    conf: Annotated[list[str] | None, Option(metavar="NAME=VALUE", help="Spark setting; may be repeated.")] = None
    verbose: Annotated[bool, Option("-v", help="Show Spark's log.")] = False

    def __post_init__(self) -> None:
        for each in self.conf or ():
            if not each.partition("=")[0] or "=" not in each:
                raise UsageError(f"--conf {each}: not NAME=VALUE")

    @property
    def is_set(self) -> bool:
        """Whether any option is given."""
        return self != Cluster()

    @property
    def settings(self) -> dict[str, str]:
        """Spark's settings by name."""
        return dict(each.split("=", 1) for each in self.conf or ())


NO_OPTIONS: Final = CaptureOptions()
THIS_MACHINE: Final = Cluster()
PLAIN_CSV: Final = CsvOptions()


def parse_filter(text: str | None, option: str = "-Y", options: CaptureOptions = NO_OPTIONS) -> "Filter | None":
    """Parse the filter of an option, if it is given; values of records are opened as `options` say. Raises
    `UsageError` with notes that show where it is wrong."""
    if text is None:
        return None
    from dissector.filter import FilterError, parse

    try:
        return parse(text, options.opener)
    except FilterError as error:
        usage_error = UsageError(f"{option}: {error}")
        start = max(0, error.column - WIDTH // 2)
        before = clean(error.text[start : error.column])
        usage_error.add_note(f"  {before}{clean(error.text[error.column : start + WIDTH])}")
        usage_error.add_note(f"  {' ' * len(before)}^")
        raise usage_error from None


def no_match_message(filter: "Filter", rows: int) -> str:
    """Return the message for a filter that no row matches."""
    return f"-Y {filter.text}: 0 of {counted(rows, 'row')} match"
