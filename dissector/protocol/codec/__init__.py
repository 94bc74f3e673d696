"""Readers, tracers and writers of messages, all made from one plan of a schema's version."""
