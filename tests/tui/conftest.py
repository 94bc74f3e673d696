"""Each test has another folder for configuration and state. Only a few tests that draw screens run in `make check`."""

import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from tests.tui.shared_screens import SharedScreens

QUICK: Final = ("test_main_screen", "test_history")
"""Files whose screens are drawn in `make check`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A screen takes half a second to open and close: hundreds of them are for `make test`."""
    for item in items:
        if not isinstance(item, pytest.Function) or item.path.parent != Path(__file__).parent:
            continue
        if inspect.iscoroutinefunction(item.function) and item.path.stem not in QUICK:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder above both."""
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    return home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[SharedScreens]:
    """Screens that the tests of a module share."""
    screens = SharedScreens()
    yield screens
    await screens.close()
