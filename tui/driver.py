"""The driver of the terminal, which takes keys that are not UTF-8.

Textual decodes strictly what the terminal sends: one byte of a terminal that is set to Latin-1 ends its input thread,
and the program with it.
"""

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver


class TolerantDriver(LinuxDriver):
    """Reads on behind such a byte."""

    def run_input_thread(self) -> None:
        while not self.exit_event.is_set():
            try:
                super().run_input_thread()
            except UnicodeDecodeError as error:
                for event in XTermParser(self._debug).feed(typed_text(error.object)):
                    self.process_message(event)


def typed_text(data: bytes) -> str:
    """Return what was typed: UTF-8, in which other bytes are letters of Latin-1; what are none there are left out."""
    found = []
    for character in data.decode("utf-8", "surrogateescape"):
        byte = ord(character) - 0xDC00
        if not 0x80 <= byte <= 0xFF:
            found.append(character)
        elif byte >= 0xA0:
            found.append(chr(byte))
    return "".join(found)
