"""Keys and values of records, opened: JSON, Avro, Protobuf, schema ids, envelopes. Bytes in, values out."""
