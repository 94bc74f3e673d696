"""The program with all its commands, for what says something about every one: the manual page, documentation, tests."""

from typing import Final

from dissector.cli.main import whole_program

app: Final = whole_program()
