"""Live captures: a capture process that writes a growing file, and the analyzing process that follows it."""

from dissector.capture.live.interfaces import LOOPBACK, interfaces
from dissector.capture.live.recording import Recording
from dissector.capture.live.recording_source import RingPipes, recording_source
from dissector.capture.live.right_holder import start_and_give_up_rights
from dissector.capture.live.settings import CaptureSettings, RecordingSettings, RingSettings

__all__ = [
    "LOOPBACK",
    "CaptureSettings",
    "Recording",
    "RecordingSettings",
    "RingPipes",
    "RingSettings",
    "interfaces",
    "recording_source",
    "start_and_give_up_rights",
]
