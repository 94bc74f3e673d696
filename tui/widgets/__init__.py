"""The panes, a file each."""
