"""Each API is of one family."""

from dissector.protocol.schema.api_groups import API_GROUPS, OTHER_GROUP, api_group
from dissector.protocol.schema.loader import apis


def test_no_api_is_of_two_families_and_all_keys_are_of_apis() -> None:
    keys = [key for keys in API_GROUPS.values() for key in keys]
    assert len(keys) == len(set(keys))
    assert set(keys) <= {api.key for api in apis()}


def test_families_go_by_what_the_names_say() -> None:
    by_name = {api.name: api_group(api.key) for api in apis()}
    assert {by_name[name] for name in by_name if "Transaction" not in name and name.endswith("Txn")} == {"transactions"}
    assert {by_name[name] for name in by_name if "Acls" in name or name.startswith("Sasl")} == {"security"}
    assert {by_name[name] for name in by_name if name.endswith("GroupHeartbeat")} == {"groups"}
    assert {by_name[name] for name in by_name if "Raft" in name or "Quorum" in name} == {"brokers"}
    assert (by_name["Produce"], by_name["Fetch"], by_name["CreateTopics"]) == ("produce", "fetch", OTHER_GROUP)
