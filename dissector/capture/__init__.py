"""Bytes from anywhere to `PacketBatch`: capture files, compressed or not, pipes, growing files, several merged."""

from dissector.capture.errors import CaptureError
from dissector.capture.file_opening import open_capture
from dissector.capture.files import GrowingFile, Reader

__all__ = ["CaptureError", "GrowingFile", "Reader", "open_capture"]
