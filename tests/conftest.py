"""Shared by all tests: where the bundled captures are, and no schemas but the shipped ones."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

PCAPS = Path(__file__).parents[1] / "pcaps"
os.environ["XDG_DATA_HOME"] = "/proc/nonexistent"  # what somebody imported on this machine is not part of a test
os.environ["XDG_CONFIG_HOME"] = "/proc/nonexistent"  # nor what they configured; not even root can make it
os.environ["XDG_STATE_HOME"] = os.devnull  # and nothing of a test is remembered: no folder can be made there
CAPTURES = sorted(PCAPS.glob("*.pcapng"))

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
settings.register_profile("long", settings.get_profile("default"), max_examples=3000)  # --hypothesis-profile=long
settings.load_profile("default")


@pytest.fixture(params=CAPTURES, ids=lambda path: path.stem)
def bundled(request: pytest.FixtureRequest) -> Path:
    """Each bundled capture in turn."""
    path = request.param
    assert isinstance(path, Path)
    return path
