"""Bytes from anywhere to `PacketBatch`: capture files, compressed or not, pipes, growing files, several merged."""

from dissector.capture.errors import CaptureError
from dissector.capture.files import GrowingFile, Reader, open_capture

__all__ = ["CaptureError", "GrowingFile", "Reader", "open_capture"]
