"""A session of Spark takes half a minute to come: one worker has all tests that ask for the one of `make test`."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """They come first: a worker that has nothing left to do steals from the end of what another one has."""
    items.sort(key=lambda item: not (isinstance(item, pytest.Function) and "made" in item.fixturenames))
