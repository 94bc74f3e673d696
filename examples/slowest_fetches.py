"""Which fetches took longest, and when? python slowest_fetches.py orders.pcapng slowest.png"""

import sys

import matplotlib.pyplot as plot

import dissector

with dissector.open(sys.argv[1]) as capture:
    slowest = capture.to_pandas(filter="api == Fetch && latency > 0s").nlargest(100, "latency_ns")
print(slowest[["number", "time", "client_id", "latency_ns", "info"]].head(10).to_string(index=False))
plot.scatter(slowest["time"], slowest["latency_ns"] / 1e6)
plot.ylabel("latency, ms")
plot.savefig(sys.argv[2])
