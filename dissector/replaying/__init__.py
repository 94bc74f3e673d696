"""Sends a capture's requests to another broker, and records what it answers."""

from dissector.replaying.logins import Login, LoginError
from dissector.replaying.replay import Replay, ReplayError, ReplaySettings

__all__ = ["Login", "LoginError", "Replay", "ReplayError", "ReplaySettings"]
