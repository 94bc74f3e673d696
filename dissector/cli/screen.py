"""The screen, found in one place and imported only when it is shown, as Textual takes longer to import than most
commands take to run.

Each function is the one of `tui` that has its name, with its arguments, exit code and errors.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.recents import recent_captures
    from tui.run import run, run_diff, run_live, run_matrix


__all__ = ["recent_captures", "run", "run_diff", "run_live", "run_matrix"]


def __getattr__(name: str) -> object:
    if name == "recent_captures":
        from tui import recents

        return recents.recent_captures
    if name in __all__:
        import tui.run

        return getattr(tui.run, name)
    raise AttributeError(name)
