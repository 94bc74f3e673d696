"""Finds the bytes in texts as people paste them: dumps, hex, lists, literals, base64, printed packets."""
