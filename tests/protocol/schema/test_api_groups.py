"""Groups of APIs: each API is in one."""

from dissector.protocol.schema.api_groups import API_GROUPS, OTHER_GROUP, api_group
from dissector.protocol.schema.loader import apis


def test_no_api_is_in_two_groups_and_all_keys_are_known() -> None:
    keys = [key for keys in API_GROUPS.values() for key in keys]
    assert len(keys) == len(set(keys))
    assert set(keys) <= {api.key for api in apis()}


def test_groups_follow_the_names_of_apis() -> None:
    by_name = {api.name: api_group(api.key) for api in apis()}
    assert {by_name[name] for name in by_name if "Transaction" not in name and name.endswith("Txn")} == {"transactions"}
    assert {by_name[name] for name in by_name if "Acls" in name or name.startswith("Sasl")} == {"security"}
    assert {by_name[name] for name in by_name if name.endswith("GroupHeartbeat")} == {"groups"}
    assert {by_name[name] for name in by_name if "Raft" in name or "Quorum" in name} == {"brokers"}
    assert (by_name["Produce"], by_name["Fetch"], by_name["CreateTopics"]) == ("produce", "fetch", OTHER_GROUP)
