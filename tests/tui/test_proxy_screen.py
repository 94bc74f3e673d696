"""The main screen of a proxy: where clients find it, before and after the first row."""

import asyncio
from pathlib import Path

import pytest
from textual.widgets import Static

from dissector.capture.live import Recording, recording_source
from dissector.capture_session import Capture
from dissector.core.addresses import BrokerAddress
from dissector.proxy_server.settings import ProxySettings
from tests.capture.live.loopback import broker, talk
from tests.proxy_server.proxies import forked
from tests.tui.main_driver import Screen
from tui.app import KDissectApp
from tui.screens.live_screen import LiveScreen


@pytest.mark.long
async def test_the_address_for_clients_is_in_the_middle_and_then_in_the_title(tmp_path: Path) -> None:
    with broker() as port:
        wanted = ProxySettings((BrokerAddress("127.0.0.1", port),), path=str(tmp_path / "kept.pcapng"))
        with Recording(wanted, forked(wanted)) as recording, Capture([recording_source(recording)]) as capture:
            main = LiveScreen(capture, recording, wanted, lambda _: (capture, recording, wanted))
            async with KDissectApp(main).run_test(size=(120, 40)) as pilot:
                screen = Screen(pilot)
                ((told, meant),) = recording.listening
                assert meant == f"127.0.0.1:{port}"
                await screen.until(lambda: f"listening on {told} for {meant}" in screen.lines())
                assert "point bootstrap.servers there" in screen.lines()
                await asyncio.to_thread(talk, int(told.rpartition(":")[2]), 3)
                await screen.until(lambda: "3 exchanges" in str(main.query_one("#title", Static).render()))
                title = str(main.query_one("#title", Static).render())
                assert title.startswith(f"● live proxy for {meant} on {told} · 3 exchanges")
                recording.stop()
