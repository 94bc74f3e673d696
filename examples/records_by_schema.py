"""Which schemas do records of a topic have? python records_by_schema.py orders.pcapng 'topic == orders'

Serializers for Avro, Protobuf and JSON Schema put a zero byte and the schema's id (4 bytes) before the data.
"""

import sys
from collections import Counter

import dissector

schemas = Counter[tuple[str, str]]()
with dissector.open(sys.argv[1]) as capture:
    for record in capture.records(*sys.argv[2:]):
        value = record.value or b""
        is_framed = len(value) >= 5 and value[0] == 0
        schemas[record.topic or "?", str(int.from_bytes(value[1:5], "big")) if is_framed else "none"] += 1
for (topic, schema), count in schemas.most_common():
    print(f"{count:>10,}  {topic}  schema {schema}")
