"""The error of a command that was used wrongly."""


class UsageError(ValueError):
    """Options or arguments that have no meaning, or not together. The message is one plain line."""
