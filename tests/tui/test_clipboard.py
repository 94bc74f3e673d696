"""Copying the selection: each format, by key and by click."""

import json
import shlex
from pathlib import Path

import pytest
from textual.widgets import OptionList

from tests.conftest import PCAPS
from tests.traffic import Turn, capture_of, conversation, request, response
from tests.tui.main_driver import JAVA, Screen, opened, to
from tests.tui.shared_screens import SharedScreens
from tui.features.clipboard import LONGEST
from tui.screens.dialog import Menu


async def copied(screen: Screen, *keys: str) -> str:
    await screen.press("y", *keys)
    return screen.pilot.app.clipboard


async def at_topic_name(screen: Screen) -> None:
    """Go to the name in a CreateTopics request."""
    await to(screen, "CreateTopics")
    assert screen.main.model.traced is not None
    node = screen.main.model.traced.message.tree.find("body.topics[0].name")
    assert node is not None
    screen.main.choose_field(node)
    await screen.settle()


@pytest.mark.long
async def test_each_letter_copies_its_form_of_the_field(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await at_topic_name(screen)
        name = b"java-orders"
        assert await copied(screen, "f") == "request.body.topics.name"
        assert await copied(screen, "v") == name.decode()
        assert bytes.fromhex(await copied(screen, "h"))[1:] == name
        assert await copied(screen, "p") == repr(bytes([len(name) + 1]) + name)
        assert json.loads(await copied(screen, "j")) == name.decode()
        assert (await copied(screen, "t")).startswith('name "java-orders"')
        assert "CreateTopics" in await copied(screen, "r")
        command = shlex.split(await copied(screen, "c"))
        assert command == ["kdissect", "show", JAVA, "-Y", f"number == {screen.row + 1}"]


@pytest.mark.long
async def test_a_command_has_no_control_character_of_a_file_name(tmp_path: Path) -> None:
    """A terminal ends a paste at ESC [201~, and takes what follows for typed."""
    path = tmp_path / "a\x1b[201~\nreboot\n.pcapng"
    path.write_bytes(Path(JAVA).read_bytes())
    async with opened(str(path)) as screen:
        for key in ("c", "w"):
            command = await copied(screen, key)
            assert command.isprintable()
            assert r"\033[201~\012reboot\012.pcapng" in command


@pytest.mark.exhaustive
async def test_without_a_field_the_message_is_copied(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await to(screen, "CreateTopics")
        request = screen.main.model.exchange.request
        assert request is not None
        assert bytes.fromhex(await copied(screen, "h")) == request.data
        assert json.loads(await copied(screen, "j"))["body"]["topics"][0]["name"] == "java-orders"
        tree = (await copied(screen, "t")).splitlines()
        assert tree[0].startswith("size ")
        assert any(line.startswith('      name "java-orders"') for line in tree)
        before = screen.pilot.app.clipboard
        assert await copied(screen, "f") == before


async def test_the_menu_takes_keys_and_clicks_and_closes(shared: SharedScreens) -> None:
    async with shared.opened(JAVA) as screen:
        await at_topic_name(screen)
        await screen.pilot.press("y")
        await screen.pilot.pause()
        assert isinstance(screen.pilot.app.screen, Menu)
        await screen.press("escape")
        assert screen.pilot.app.clipboard == ""
        assert await copied(screen, "down", "enter") == "java-orders"
        await screen.pilot.press("y")
        await screen.pilot.pause()
        await screen.pilot.click(OptionList, offset=(5, 1))
        await screen.settle()
        assert screen.pilot.app.clipboard == "request.body.topics.name"


@pytest.mark.long
async def test_copied_text_has_nothing_that_a_terminal_acts_on(tmp_path: Path) -> None:
    hostile = "\x1b]0;owned\x07\r\nrm -rf\x9b\u202e".encode()
    topic = len(hostile).to_bytes(2, "big") + hostile
    turns = [Turn(True, request(1, client_id=hostile, body=(1).to_bytes(4, "big") + topic)), Turn(False, response(1))]
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        for keys in ("v", "j", "t", "r", "p"):
            assert screen.main.model.traced is not None
            node = screen.main.model.traced.message.tree.find("body.topics[0].name")
            assert node is not None
            screen.main.choose_field(node)
            text = await copied(screen, keys)
            assert "owned" in text, keys
            assert not {c for c in text if (ord(c) < 32 and c != "\n") or 0x7F <= ord(c) < 0xA0 or c == "\u202e"}
        assert "\n" not in await copied(screen, "v")


@pytest.mark.long
async def test_a_long_text_is_cut_and_that_is_reported(tmp_path: Path) -> None:
    names = b"".join(b"\x00\x05t%04d" % n for n in range(5000))
    turns = [Turn(True, request(1, body=(5000).to_bytes(4, "big") + names))]
    async with opened(capture_of(tmp_path, conversation(turns))) as screen:
        for keys in ("h", "j", "t"):
            assert len(await copied(screen, keys)) == LONGEST
            assert "the first 65,536 of" in screen.notifications()[-1]


@pytest.mark.long
async def test_masked_secrets_stay_masked_in_every_form() -> None:
    async with opened(str(PCAPS / "java-sasl-plain.pcapng")) as screen:
        await to(screen, "SaslAuthenticate")
        for key in ("v", "h", "p", "j", "t"):
            screen.pilot.app.copy_to_clipboard("")
            text = await copied(screen, key)
            data = bytes.fromhex(text) if key == "h" else text.encode()
            assert (b"***" in data) or (key == "v" and not text), key
