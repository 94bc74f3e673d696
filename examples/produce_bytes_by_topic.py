"""How many bytes go to each topic? python produce_bytes_by_topic.py orders.pcapng"""

import sys
from collections import Counter

import dissector

sizes = Counter[str]()
with dissector.open(*sys.argv[1:]) as capture:
    for record in capture.records("api == Produce"):
        sizes[record.topic or "?"] += len(record.key or b"") + len(record.value or b"")
for topic, size in sizes.most_common():
    print(f"{size:>12,}  {topic}")
