"""`kdissect replay`: a capture's requests to another broker, and its answers beside the recorded ones."""

import asyncio
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from dissector.analysis.diff import DiffSide, diff
from dissector.analysis.diff.report import diff_report
from dissector.analysis.diff.side import RowsSide
from dissector.analysis.diff.to_json import diff_to_json
from dissector.capture.errors import CaptureError, MissingFileError
from dissector.capture_session import Capture
from dissector.cli.diff import write_report
from dissector.cli.errors import NEGATIVE, UsageError, print_error
from dissector.cli.formats import DiffFormat
from dissector.cli.options import CaptureOptions
from dissector.cli.saved_files import save
from dissector.cli.show import read_rows
from dissector.conversation import packets, pcapng
from dissector.core.text import clean, counted, os_reason
from dissector.proxy_server import AddressError, BrokerAddress, UpstreamTls
from dissector.recorded_server import recording_of
from dissector.replaying import Login, Replay, ReplayError, ReplaySettings
from dissector.replaying.logins import MECHANISMS
from dissector.replaying.replay import ReplayOutcome, left_out_words

PASSWORD_VARIABLE: Final = "KDISSECT_PASSWORD"


def login_of(user: str, password_file: str, mechanism: str) -> Login | None:
    """Return who logs in; None without `--user`. Raises `UsageError`."""
    if not user:
        if password_file:
            raise UsageError("--password-file needs --user NAME")
        return None
    if mechanism not in MECHANISMS:
        raise UsageError(f"--sasl-mechanism {mechanism}: known are {', '.join(MECHANISMS)}")
    if password_file:
        try:
            password = Path(password_file).read_text().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = os_reason(error) if isinstance(error, OSError) else "is no text"
            raise UsageError(f"--password-file {password_file}: {why}") from None
    elif PASSWORD_VARIABLE in os.environ:
        password = os.environ[PASSWORD_VARIABLE]
    else:
        raise UsageError(f"--user needs a password: --password-file FILE, or the variable {PASSWORD_VARIABLE}")
    return Login(mechanism, user, password)


def replay_settings(
    broker: str,
    tls: UpstreamTls | None,
    login: Login | None,
    speed: float | None,
    timeout: float,
    *,
    allow_writes: bool,
    recorded_login: bool,
) -> ReplaySettings:
    """Return the settings of options. Raises `UsageError`."""
    try:
        address = BrokerAddress.parse(broker)
    except AddressError as error:
        raise UsageError(str(error)) from None
    return ReplaySettings(address, tls, login, allow_writes, recorded_login, speed, timeout)


def replay(file: str, settings: ReplaySettings, path: str, form: DiffFormat, options: CaptureOptions) -> int:
    """Replay and compare; return the exit code: 0 for the same answers, 1 for others, 2 if nothing was replayed."""
    if file == "-":
        raise CaptureError(f"{file}: replay reads the capture twice: save it to a file first")
    if not Path(file).is_file():
        if not Path(file).exists():
            raise MissingFileError(file)
        raise CaptureError(f"{file}: not a file, but replay reads the capture twice")
    with replace(options, show_secrets=True).open([file]) as capture:  # a broker gets what was recorded
        if not read_rows(capture):
            return print_error(f"{file}: nothing to replay")
        recording = recording_of(capture)
    run = Replay(recording, settings, _say)
    try:
        outcome = asyncio.run(run.run())
    except ReplayError as error:
        return print_error(str(error))
    for line in left_out_words(run.left_out):
        _say(line)
    if not outcome.rows:
        return print_error(f"{file}: none of its requests could be sent")
    sent, connections = counted(len(outcome.rows), "request"), counted(len(outcome.conversations), "connection")
    _say(f"sent {sent} on {connections} to {settings.broker}")
    for why, count in outcome.unanswered.most_common():
        _say(f"  {count:,} x {why}")
    with TemporaryDirectory() as folder:
        made = path or str(Path(folder) / "replayed.pcapng")
        save(pcapng(packets(outcome.conversations), f"kdissect replay to {settings.broker}"), made)
        return _compare(file, made, outcome, settings, form, options)


def _compare(
    file: str, made: str, outcome: ReplayOutcome, settings: ReplaySettings, form: DiffFormat, options: CaptureOptions
) -> int:
    ports = frozenset(each.server.port for each in outcome.conversations)
    with options.open([file]) as recorded, Capture([made], ports=ports) as replayed:
        for capture in (recorded, replayed):
            for _ in capture.read():
                pass
        rows = np.sort(np.asarray(outcome.rows, np.int64)) - 1
        a = RowsSide(recorded, PurePath(file).stem, stop=len(recorded), chosen=rows)
        b = DiffSide(replayed, str(settings.broker))
        found = diff(a, b)
        write_report(form, partial(diff_to_json, found), diff_report(found, with_bytes=form is DiffFormat.HTML))
        return 0 if found.is_same and not outcome.unanswered else NEGATIVE


def _say(words: str) -> None:
    print(f"kdissect: {clean(words)}", file=sys.stderr, flush=True)
