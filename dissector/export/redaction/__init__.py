"""Redacts captures: replaces contents, credentials and names; keeps structure and sizes.

Only listed words stay (`allowed_words`); all others are replaced, also in unknown fields. Contents and secrets become
asterisks; a name becomes a pseudonym of the same length, the same one in the whole capture (`pseudonyms`). A frame
keeps its size and its tree (`frames`), also with compressed sections (`compress_to_size`); packets are built new around
the frames and keep only times, ports, sequence numbers and flags (`packets`).
"""
