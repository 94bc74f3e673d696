"""Schema and version in; compiled reader (values), tracer (spans) out. Both come from one plan."""
