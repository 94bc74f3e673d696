"""Captures that can be given away: contents, credentials and names replaced, structure and sizes kept.

What stays is listed (`kept`); all other words go, those of fields that nobody has heard of, too. Contents and secrets
become asterisks, names become other names of the same length, one for one over the whole capture (`names`). A frame
keeps its size and its tree (`frames`), compressed sections too (`packing`); packets are made anew around the frames, so
that nothing of theirs is left but times, ports, sequence numbers and flags (`packets`).
"""
