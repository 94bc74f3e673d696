"""`kdissect proxy` on a screen is controlled, and elsewhere it is not; how long it holds a message."""

import sys
from typing import Any

import pytest

from dissector.cli.every_command import app
from dissector.proxy_server.settings import HOLD_SECONDS, ProxySettings


def settings_of(monkeypatch: pytest.MonkeyPatch, *words: str, on_terminal: bool = True) -> tuple[int, ProxySettings]:
    """The exit code, and the settings with which a command would run."""
    found: list[ProxySettings] = []

    def run(settings: ProxySettings, *_: Any, **__: Any) -> int:
        found.append(settings)
        return 0

    monkeypatch.setattr("dissector.cli.live.live", run)
    monkeypatch.setattr("dissector.cli.live_commands.is_terminal", lambda: on_terminal)
    monkeypatch.setattr(sys, "argv", ["kdissect", "proxy", "127.0.0.1:9", *words])
    with pytest.raises(SystemExit) as ended:
        app()
    return ended.value.code if isinstance(ended.value.code, int) else 0, found[0] if found else ProxySettings(())


@pytest.mark.parametrize(
    ("words", "on_terminal", "is_controlled"),
    [
        ((), True, True),
        (("-w", "kept.pcapng"), True, True),
        ((), False, False),
        (("--text",), True, False),
        (("--limit", "3"), True, False),
        (("--check",), True, False),
        (("--", "true"), True, False),
    ],
)
def test_what_passes_can_be_changed_where_there_is_a_screen(
    words: tuple[str, ...], on_terminal: bool, is_controlled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, settings = settings_of(monkeypatch, *words, on_terminal=on_terminal)
    assert (code, settings.is_controlled, settings.hold_seconds) == (0, is_controlled, HOLD_SECONDS)


@pytest.mark.parametrize(
    ("seconds", "code"), [("0.1", 0), ("3600", 0), ("0.09", 2), ("3600.1", 2), ("nan", 2), ("long", 2)]
)
def test_a_message_is_held_for_a_tenth_of_a_second_up_to_an_hour(
    seconds: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, settings = settings_of(monkeypatch, "--hold-limit", seconds)
    assert ended == code
    assert code or settings.hold_seconds == float(seconds)
