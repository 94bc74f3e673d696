"""The screens and dialogs, a file each."""
