"""Requests of each client in the last ten seconds: python live_counter.py 9092 [SECONDS]"""

import sys
from collections import Counter, deque

import dissector

recent: deque[dissector.Exchange] = deque()
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else None
with dissector.live(int(sys.argv[1]), seconds=seconds) as traffic:
    for exchange in traffic:
        recent.append(exchange)
        while recent[0].time_ns < exchange.time_ns - 10_000_000_000:
            recent.popleft()
        counts = Counter(each.client_id or each.client for each in recent)
        print("  ".join(f"{client} {count}" for client, count in counts.most_common(5)), flush=True)
