"""Bytes from anywhere to `PacketBatch`: pcap and pcapng files, standard input."""

from dissector.capture.errors import CaptureError
from dissector.capture.files import Reader, open_capture

__all__ = ["CaptureError", "Reader", "open_capture"]
