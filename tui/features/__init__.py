"""What a user does on the main screen and on the diff screen (`diff_*.py`): features (`tui/feature.py`), one to a file,
or a few that belong together. The screens list them and say what Escape does first (`escape_order`).
"""
