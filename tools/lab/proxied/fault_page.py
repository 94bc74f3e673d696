"""`docs/client-faults.md`, made from the facts of the last runs: `python -m tools.lab.proxied.fault_page`."""

import json
from pathlib import Path
from typing import Any, Final

from tools.lab.tools import ROOT

FACTS: Final = Path(__file__).with_name("fault_facts.json")
MARKDOWN: Final = ROOT / "docs" / "client-faults.md"
FAULTS: Final = {
    "leader-moved": "api == Produce: error NOT_LEADER_OR_FOLLOWER, first 3",
    "said-to-have-failed": "api == Produce: error NOT_ENOUGH_REPLICAS_AFTER_APPEND acted, first 2",
    "closed": "api == Produce: close after, first 1",
    "dropped": "api == Produce: drop, first 1",
    "throttled": "api == Produce: throttle 1s, first 1",
    "fetch-leader-moved": "api == Fetch: error NOT_LEADER_OR_FOLLOWER, first 2",
    "fetch-corrupt": "api == Fetch: corrupt, first 1",
    "coordinator-moved": "api == OffsetCommit: error NOT_COORDINATOR, first 1",
}
"""What is injected, as `--fault` takes it."""
_INTRO: Final = """# What clients do after a fault

{clients} clients produce {records} records, one each 20 ms, and consume them in a group, with default settings,
through `kdissect proxy` against one broker of Kafka {broker}; the proxy injects [one fault](proxy.md#faults) a run. All
cells are of runs on {run}: what a client did next is read from the recording, what became of its records from the
topic. `make client-faults` runs all of it again and makes this page. Times depend on the run.

A cell says: what the client asked before it sent a request of that API again, whether it did so on a connection that it
opened after the fault, how long after the request that was hurt; then how many of the records are in the topic, and how
many are there twice.
"""


def read_facts() -> dict[str, Any]:
    """Return what the last runs found."""
    empty: dict[str, Any] = {"clients": {}}
    return json.loads(FACTS.read_text()) if FACTS.exists() else empty


def write_facts(facts: dict[str, Any]) -> None:
    """Keep them, and make the page."""
    FACTS.write_text(json.dumps(facts, indent=1) + "\n")
    MARKDOWN.write_text(page(facts))


def page(facts: dict[str, Any]) -> str:
    """Return the page: a table for each fault, a row for each client."""
    clients = list(facts["clients"].values())
    parts = [_INTRO.format(clients=len(clients), records=facts["records"], broker=facts["broker"], run=facts["run"])]
    for name, rule in FAULTS.items():
        parts += [f"\n## {name.replace('-', ' ').capitalize()}\n\n`{rule}`\n"]
        parts += ["\n| client | version | injected | then | records |\n|---|---|---|---|---|\n"]
        for client in clients:
            found = client["faults"].get(name)
            if found is not None:
                words = " | ".join(_cells(found, facts["records"]))
                parts.append(f"| {client['title']} | {client['version']} | {words} |\n")
    return "".join(parts)


def _cells(found: dict[str, Any], records: int) -> tuple[str, str, str]:
    if not found["fired"]:
        return "never: no such request that gets a response", "-", _records(found, records)
    then = "never again"
    if found["again_ms"] is not None:
        steps = [*found["looked_up"], *["a new connection"] * found["reconnected"]]
        then = f"{', '.join([*steps, 'again'])} after {found['again_ms'] / 1_000:.2f} s"
    if found["failure"]:
        then += f"; **fails**: `{_clean(found['failure'])}`"
    return f"{found['fired']}", then, _records(found, records)


def _records(found: dict[str, Any], records: int) -> str:
    there = f"{found['there']} of {records}"
    if found["there"] < records:
        there = f"**{there}**"
    return there + (f", **{found['twice']} twice**" if found["twice"] else "")


def _clean(words: str) -> str:
    return words.replace("|", "/").replace("`", "'")


if __name__ == "__main__":
    MARKDOWN.write_text(page(read_facts()))
