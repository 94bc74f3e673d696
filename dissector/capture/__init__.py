"""Bytes from anywhere to `PacketBatch`: files of packets, compressed or not, pipes, files that grow, several as one."""

from dissector.capture.errors import CaptureError
from dissector.capture.files import GrowingFile, Reader, open_capture

__all__ = ["CaptureError", "GrowingFile", "Reader", "open_capture"]
