"""What a user does with a proxy on its screen: faults are armed and added, messages are held and decided about."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList, Static

from dissector.capture.live import Recording, recording_source
from dissector.capture_session import Capture
from dissector.protocol.message import Values
from dissector.proxy_server.controls import ProxyControls
from dissector.proxy_server.settings import ProxySettings
from tests.proxy_server.faults.wires import Client, faulty
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.features.intercept import in_editor
from tui.screens.faults_screen import LONGEST, FaultsScreen
from tui.screens.held_screen import HeldScreen
from tui.screens.proxy_screen import ProxyScreen

EDITING = """
import json, pathlib, stat, sys
path = pathlib.Path(sys.argv[1])
assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
pathlib.Path({seen!r}).write_text(str(path))
line = json.loads(path.read_text())
{change}
path.write_text(json.dumps(line))
"""


class Seen(Screen):
    """The screen, and a client of the proxy."""

    client: Client

    async def press(self, *keys: str) -> None:
        """Press keys; the worker that reads a live capture never ends, and is not waited for."""
        await self.pilot.press(*keys)

    def asking(self, name: str) -> Awaitable[Values]:
        return asyncio.create_task(asyncio.to_thread(self.client.ask, name))

    @property
    def title(self) -> str:
        return self.text("#title")

    def shown(self, selector: str) -> str:
        return str(self.pilot.app.screen.query_one(selector, Static).render())

    @property
    def listed(self) -> list[str]:
        options = self.pilot.app.screen.query_one(OptionList)
        return [str(each.prompt) for each in options.options]

    async def on(self, kind: type) -> None:
        await self.until(lambda: isinstance(self.pilot.app.screen, kind))

    async def type(self, text: str) -> None:
        await self.until(lambda: [each for each in self.pilot.app.screen.query(Input) if each.has_focus])
        self.pilot.app.screen.query_one(Input).value = text
        await self.press("enter")


@contextlib.asynccontextmanager
async def proxied(folder: Path, *rules: str, size: tuple[int, int] = (120, 40)) -> AsyncIterator[Seen]:
    with faulty(folder, *rules, is_controlled=True, hold_seconds=60) as client:
        recording = client.between.recording
        with Capture([recording_source(recording)]) as capture:
            main = ProxyScreen(capture, recording, _settings(client), _never)
            async with KDissectApp(main).run_test(size=size) as pilot:
                screen = Seen(pilot)
                screen.client = client
                try:
                    yield screen
                finally:
                    recording.stop()


def _settings(client: Client) -> ProxySettings:
    return ProxySettings.of(["127.0.0.1"], "", "", tls=None, listen_tls=None, path=str(client.between.path))


def _never(settings: object) -> tuple[Capture, Recording, ProxySettings]:
    raise AssertionError


@pytest.mark.long
async def test_rules_are_armed_disarmed_and_added(tmp_path: Path) -> None:
    async with proxied(tmp_path, "api == Heartbeat: error NOT_COORDINATOR, first 1") as screen:
        assert [(await screen.asking("Heartbeat"))["error_code"] for _ in range(2)] == [16, 0]
        await screen.until(lambda: "2 exchanges" in screen.title)
        await screen.press("exclamation_mark")
        await screen.on(FaultsScreen)
        await screen.until(lambda: len(screen.listed) == 3)
        assert screen.listed[0].startswith(" ● 1        fired 1 of 1  api == Heartbeat: error NOT_COORDINATOR, first 1")
        assert "Heartbeat of 127.0.0.1:" in screen.listed[2]
        assert screen.shown("#faults-head") == "1 of 1 armed"
        await screen.press("space")
        await screen.until(lambda: screen.listed[0].startswith(" ○ 1"))
        await screen.press("space")
        await screen.until(lambda: screen.listed[0].startswith(" ● 1"))
        assert (await screen.asking("Heartbeat"))["error_code"] == 16, "its triggers count anew"

        await screen.press("n")
        await screen.type("api == Produce: eror NOT_COORDINATOR")
        await screen.until(lambda: "column 17: unknown action 'eror'; did you mean error" in screen.lines())
        assert screen.pilot.app.screen.query_one(Input).value == "api == Produce: eror NOT_COORDINATOR"
        await screen.type("api == Produce: error NOT_LEADER_OR_FOLLOWER")
        await screen.on(FaultsScreen)
        await screen.until(lambda: screen.shown("#faults-head") == "2 of 2 armed")
        await screen.asking("Produce")
        await screen.until(lambda: "fired 1 of 1" in screen.listed[1])

        await screen.until(lambda: "4 exchanges" in screen.title)
        await screen.press("k")
        await screen.until(lambda: len(screen.listed) == 6)
        screen.pilot.app.screen.query_one(OptionList).highlighted = 5  # the first one that fired
        await screen.press("enter")
        await screen.until(lambda: screen.pilot.app.screen is screen.main and screen.row == 0)


@pytest.mark.long
async def test_a_rule_is_typed_as_a_command(tmp_path: Path) -> None:
    async with proxied(tmp_path, size=(80, 24)) as screen:
        await screen.press("colon")
        await screen.type("fault api == Heartbeat: error NOT_COORDINATOR")
        await screen.until(lambda: "armed: api == Heartbeat: error NOT_COORDINATOR" in screen.notifications())
        assert (await screen.asking("Heartbeat"))["error_code"] == 16


def editor(folder: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let an editor change a line so; return the file that has the name of the file that it was given."""
    script, seen = folder / "editor.py", folder / "seen"
    script.write_text(EDITING.format(seen=str(seen), change=change))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")
    return seen


@pytest.mark.long
async def test_messages_are_held_looked_at_edited_and_sent_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KDissectApp, "suspend", lambda _: contextlib.nullcontext())
    seen = editor(tmp_path, "line['request']['body']['group_id'] = 'writers'", monkeypatch)
    async with proxied(tmp_path) as screen:
        await screen.press("colon")
        await screen.type("intercept requests api === Heartbeat")
        await screen.until(lambda: "column " in screen.lines())
        await screen.type("requests api == Heartbeat")
        await screen.until(lambda: "intercepting" in screen.title)
        answer = screen.asking("Heartbeat")
        await screen.until(lambda: "‖ 1 message held: H" in screen.title)
        await screen.until(lambda: "‖" in screen.list.render_line(1).text and "held" in screen.list.render_line(1).text)

        await screen.press("H")
        await screen.on(HeldScreen)
        await screen.until(lambda: '"group_id": "readers"' in screen.shown("#held-text"))
        assert screen.shown("#held-head") == "intercepted: requests api == Heartbeat · 60 s each"
        assert "→ request  Heartbeat v3" in screen.listed[0]
        await screen.press("e")
        assert (await answer)["error_code"] == 0
        assert b"writers" in screen.client.came[0]
        assert not Path(seen.read_text()).exists()
        await screen.until(lambda: screen.shown("#held-text") == "no message is held")

        for _ in range(2):
            await asyncio.to_thread(screen.client.send, "Heartbeat")
        await screen.until(lambda: screen.listed)
        await screen.press("A")
        await screen.until(lambda: len(screen.client.came) == 2)
        await screen.press("i")
        await screen.type("")
        await screen.until(lambda: len(screen.client.came) == 3)
        await screen.until(lambda: screen.shown("#held-head").startswith("nothing is intercepted"))

        editor(tmp_path, "line['request']['body']['group_id'] = 7", monkeypatch)
        await screen.press("i")
        await screen.type("requests api == Heartbeat")
        await screen.until(lambda: screen.shown("#held-head").startswith("intercepted: "))
        await asyncio.to_thread(screen.client.send, "Heartbeat")
        await screen.until(lambda: screen.listed)
        await screen.press("e")
        await screen.until(lambda: any("the message is still held" in each for each in screen.notifications()))
        [words] = [each for each in screen.notifications() if "is still held" in each]
        assert words.startswith("request.body.group_id: 7 "), words
        assert len(screen.listed) == 1
        await screen.press("x")
        await screen.until(lambda: not screen.listed)
        assert len(screen.client.came) == 3
        await screen.press("i")
        await screen.type("")
        await screen.until(lambda: screen.shown("#held-head").startswith("nothing is intercepted"))
        await screen.press("escape")
        await screen.until(lambda: "‖" not in screen.title)


@pytest.mark.long
async def test_what_is_longer_than_the_screen_is_scrolled(tmp_path: Path) -> None:
    async with proxied(tmp_path, size=(80, 24)) as screen:
        await screen.press("H")
        await screen.on(HeldScreen)
        await screen.until(lambda: screen.shown("#held-text") == "no message is held")
        await screen.press("i")
        await screen.type("requests")
        await screen.until(lambda: screen.shown("#held-head") == "intercepted: requests · 60 s each")
        await asyncio.to_thread(screen.client.send, "Produce")
        await screen.until(lambda: '"transactional_id"' in screen.lines())
        fields = screen.pilot.app.screen.query_one("#held-fields")
        await screen.press("J", "J")
        await screen.until(lambda: fields.scroll_y == 2 * (fields.size.height - 1))
        await screen.press("K")
        await screen.until(lambda: fields.scroll_y == fields.size.height - 1)
        await screen.press("a")
        await screen.until(lambda: screen.client.came)


@pytest.mark.long
async def test_an_edit_that_comes_too_late_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KDissectApp, "suspend", lambda _: contextlib.nullcontext())
    async with proxied(tmp_path) as screen:
        controls = ProxyControls(screen.client.between.recording)

        def edited_late(text: str) -> str:
            controls.send_all()
            return text.replace("readers", "writers")

        monkeypatch.setattr("tui.features.intercept.in_editor", edited_late)
        await asyncio.to_thread(controls.intercept, "requests api == Heartbeat")
        answer = screen.asking("Heartbeat")
        await screen.press("H")
        await screen.on(HeldScreen)
        await screen.until(lambda: screen.listed)
        await screen.press("e")
        await screen.until(screen.notifications)
        assert (await answer)["error_code"] == 0
        assert b"readers" in screen.client.came[0]
        words = "not sent: it is no longer held: it was sent on, or its connection closed; :hold-limit gives more time"
        await screen.until(lambda: words in screen.notifications())


@pytest.mark.long
async def test_a_long_rule_takes_several_lines_up_to_a_length(tmp_path: Path) -> None:
    def rule(size: int) -> str:
        begin, end = "api == Heartbeat && client_id == ", ": drop"
        return begin + "x" * (size - len(begin) - len(end)) + end

    async with proxied(tmp_path, rule(LONGEST), rule(LONGEST + 1), size=(80, 24)) as screen:
        await screen.press("exclamation_mark")
        await screen.on(FaultsScreen)
        await screen.until(lambda: len(screen.listed) == 2)
        assert screen.listed[0].endswith("x: drop")
        assert screen.listed[1].endswith("x: dro…")
        await screen.until(lambda: ": drop" in screen.lines())


def test_an_editor_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "false")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(ValueError, match="false ended with exit code 1"):
        in_editor("{}")
    assert [*tmp_path.iterdir()] == []
    monkeypatch.setenv("EDITOR", "/none/such")
    with pytest.raises(OSError, match="No such file"):
        in_editor("{}")
