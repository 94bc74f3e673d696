"""The rights of a process until it reads packets, and who it is afterwards: for the capture process and the analyzing
one."""

import os
import tempfile

from dissector.capture.live.privileges import give_up_rights, rights_are_held, use_rights, user_to_become
from dissector.capture.live.program_files import ProgramFiles


class Rights:
    """What this process may do, found out while it has one thread."""

    def __init__(self) -> None:
        self.are_held = rights_are_held()
        if self.are_held:
            use_rights()
        self.user = user_to_become()
        """Who this process will be; None if it stays who it is."""
        self.warning = ""
        """What could not be given up, once the rest was."""
        self._program = ProgramFiles() if self.are_held else None

    def give_up(self) -> None:
        """Give them up; home and temporary folder are then the user's. Raises `CaptureError`."""
        if self._program is None:
            return
        give_up_rights(self.user)
        self._program.stay_reachable(self.user)
        if self.user is not None:
            os.environ |= {"HOME": self.user.home, "USER": self.user.name, "LOGNAME": self.user.name}
            tempfile.tempdir = None
        elif os.geteuid() == 0:
            self.warning = "this system does not let root become another user: it goes on as root without capabilities"
