"""Answers clients from recorded exchanges, as the recorded brokers did."""

from dissector.recorded_server.exchanges import RecordedExchanges, recording_of, recording_of_frames
from dissector.recorded_server.server import Answered, RecordedServer, ServeSettings

__all__ = ["Answered", "RecordedExchanges", "RecordedServer", "ServeSettings", "recording_of", "recording_of_frames"]
