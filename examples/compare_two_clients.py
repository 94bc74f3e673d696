"""Do two clients do the same? python compare_two_clients.py java.pcapng librdkafka.pcapng; exits with 1 if not."""

import sys

import dissector

with dissector.open(sys.argv[1]) as one, dissector.open(sys.argv[2]) as other:
    found = dissector.diff(one, other)
    print(found)
sys.exit(not found.is_same)
