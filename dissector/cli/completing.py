"""What a shell offers for a value when Tab is pressed: APIs, row fields, findings, rules. It offers files itself.

Each function takes what is typed so far, and returns values, some with a word about them. They are called in a
process of their own, so what they import costs nobody else.
"""

Offered = list[tuple[str, str]]


def row_field(incomplete: str) -> Offered:
    """Return names of row fields."""
    from dissector.exchange.row_fields import ROW_FIELDS

    return [(name, each.description) for name, each in ROW_FIELDS.items() if name.startswith(incomplete)]


def row_fields(incomplete: str) -> Offered:
    """Return lists of row fields: what stands before the last comma, and a name."""
    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{name}", words) for name, words in row_field(last)]


def filter_word(incomplete: str) -> Offered:
    """Return beginnings of filters: what can stand where the cursor is. A filter with spaces a shell would break."""
    from dissector.filter.completion import complete

    if " " in incomplete:
        return []
    return [(incomplete[: each.start] + each.text, each.words) for each in complete(incomplete, len(incomplete))]


def explained(incomplete: str) -> Offered:
    """Return what `explain` takes: APIs, findings, errors, rules, and its pages."""
    from dissector.analysis.conformance import RULES
    from dissector.cli.explain import REFERENCES
    from dissector.findings.registry import CODES, explain
    from dissector.protocol.schema.errors import known_errors

    return [
        *api(incomplete),
        *((code, found.title) for code in CODES if code.startswith(incomplete) and (found := explain(code))),
        *((each.name, "an error") for each in known_errors().values() if each.name.startswith(incomplete.upper())),
        *((each.code, each.title) for each in RULES if each.code.startswith(incomplete)),
        *((name, "a page") for name in REFERENCES if name.startswith(incomplete)),
    ]


def api(incomplete: str) -> Offered:
    """Return names of APIs, in whatever case they begin."""
    from dissector.protocol.schema.loader import apis

    return [(each.name, f"key {each.key}") for each in apis() if each.name.lower().startswith(incomplete.lower())]


def response(incomplete: str) -> Offered:
    """Return an API and a version: ``Metadata:12``."""
    from dissector.protocol.schema.loader import api_named

    name, colon, version = incomplete.partition(":")
    known = api_named(name) if colon else None
    if known is None:
        return [(f"{name}:", words) for name, words in api(name)]
    return [(f"{name}:{each}", "") for each in known.versions if str(each).startswith(version)]


def rules(incomplete: str) -> Offered:
    """Return lists of rules of `check`."""
    from dissector.analysis.conformance import RULES

    before, comma, last = incomplete.rpartition(",")
    return [(f"{before}{comma}{each.code}", each.title) for each in RULES if each.code.startswith(last)]


def interface(incomplete: str) -> Offered:
    """Return names of network interfaces."""
    import socket

    names = [name for _, name in socket.if_nameindex()]
    return [(name, "") for name in (*names, "any") if name.startswith(incomplete)]
