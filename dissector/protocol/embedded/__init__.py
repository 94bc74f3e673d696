"""What is inside bytes: group protocols, records of internal topics, control records, principals, envelopes, telemetry.

One format is one function in `formats` (for bytes fields) or one line in `topics` (for records), and its schema: most
are in the imported tables, those that Apache has in code alone are in `handmade`. `tree` hangs what is inside into a
message's tree, `values` puts it beside the bytes in plain values; both ask the same formats.
"""
