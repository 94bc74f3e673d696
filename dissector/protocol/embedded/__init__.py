"""Formats inside bytes: group protocols, records of internal topics, control records, principals, envelopes, telemetry.

A format is one function in `formats` (for bytes fields) or one line in `topics` (for records), and a schema. Most
schemas are in the imported tables; those that Apache has only in code are in `extra_schemas`. `tree` adds the contents
to a message's tree, `values` puts them beside the bytes in plain values; both use the same formats.
"""
