"""The features of the main screen and of the diff screen (`diff_*.py`), a file each.

A feature is a mixin of `CoreScreen` or `DiffCoreScreen`: its keys, with a sentence about each, and their actions. Help
and palette are made from the keys. The screens that join them say what Escape does first (`ESCAPE_ORDER`).
"""
