"""What did the members of consumer groups do, step by step? python group_dance.py orders.pcapng"""

import sys

import dissector

STEPS = "api in {JoinGroup, SyncGroup, LeaveGroup, ConsumerGroupHeartbeat} || api == Heartbeat && error"
with dissector.open(sys.argv[1]) as capture:
    for step in capture.exchanges(STEPS):
        generation = step.get("response.generation_id", step.get("generation_id", step.get("member_epoch", "")))
        who = f"{step['group']:20} {step.client_id or step.client:24}"
        print(f"{step.time:%H:%M:%S.%f}  {who} {step.api:24} {generation!s:>4}  {step.info}")
