"""Why groups rebalance: what group members and coordinators say, folded into the history of each group."""
