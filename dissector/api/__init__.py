"""The Python API: what `import dissector` offers, which has the names of all that is promised.

Invariant: pyarrow, pandas, polars, dpkt and scapy are imported only by what needs them.
"""
