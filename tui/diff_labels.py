"""Pairs, causes and fields of a comparison as cells of a line, and the title of the diff screen. Every word from the
wire passes `clean` here.

A cell is a text and its tone: a style of `CellList`. A tone never says more than its sign or text does.
"""

from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from dissector.analysis.diff import DiffEntry, DiffReason, DiffResult, DiffSide, ExchangePair, PairVerdict
from dissector.analysis.diff.formatting import name_sides
from dissector.analysis.diff.report import entry_block, entry_explanation, entry_name, entry_reason
from dissector.core.text import clean, counted
from tui.diff_model import SIDES, DiffModel, FieldLine, row_of
from tui.labels import value_words, with_state

Cell = tuple[str, str]
SIGNS: Final = {
    PairVerdict.SAME: ("=", "dim"),
    PairVerdict.DIFFERENT: ("≠", "different"),
    PairVerdict.ORDER: ("~", "order"),
    PairVerdict.ONLY_A: ("−", "a"),
    PairVerdict.ONLY_B: ("+", "b"),
    PairVerdict.MORE: ("·", "dim"),
}
NOTHING: Final = "—"
PARTS: Final = {"request": "→ ", "response": "← ", "": ""}
WIDE, WIDER = 96, 130
"""Cells of a line from which on it has more columns."""
VERDICT_WIDTH: Final = 19
LEAST_FIELD: Final = 10


def fit(text: str, width: int, *, tail: bool = False) -> str:
    """Fit a text into exactly `width` cells; of one that is too long keep the beginning, or the `tail`."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    if width < 2:
        return "…"[:width]
    if not tail:
        return set_cell_size(set_cell_size(text, width - 1).rstrip() + "…", width)
    text = text[-4 * width :]
    while cell_len(text) > width - 1:
        text = text[1:]
    return set_cell_size("…" + text, width)


def pair_head(width: int) -> str:
    side = _side_width(width)
    return f"{fit('A', side)} {fit('B', side)} verdict"


def pair_cells(model: DiffModel, pair: ExchangePair, width: int, *, matched: bool, marked: int | None) -> list[Cell]:
    """Return the cells of a pair: both sides, the verdict. `matched` if by hand; `marked` is the side whose row waits
    to be matched."""
    sign, tone, words = verdict(model, pair)
    side = _side_width(width)
    out = [(f"{sign} ", tone)]
    for n in SIDES:
        label, info = _exchange(model, n, row_of(pair, n))
        label = ("◆" if n == marked else " ") + label
        room = side - cell_len(label)
        if room < 4:
            out.append((fit(label, side), ""))
        else:
            out += [(label, ""), (fit(f"  {info}", room), "dim")]
        out.append((" ", ""))
    return [*out, (fit(words + (" ⇄ by hand" if matched else ""), width - 4 - 2 * side), tone)]


def _side_width(width: int) -> int:
    return max(10, (width - 4 - VERDICT_WIDTH) // 2)


def _exchange(model: DiffModel, side: int, row: int | None) -> tuple[str, str]:
    digits = len(str(len(model.sides[side].capture)))
    if row is None:
        return NOTHING.rjust(digits), ""
    version = model.version(side, row)
    info = model.sides[side].capture.exchange(row).row.info
    return f"{row + 1:>{digits}} {clean(model.api(side, row))}{'' if version is None else f' v{version}'}", clean(info)


def pair_text(model: DiffModel, pair: ExchangePair) -> str:
    """Return a pair in one line, for the clipboard."""
    a, b = (_exchange(model, side, row_of(pair, side))[0].strip() for side in SIDES)
    return f"A {a} ⇄ B {b}: {verdict(model, pair)[2]}"


def verdict(model: DiffModel, pair: ExchangePair) -> tuple[str, str, str]:
    """Return a pair's sign, its tone, and its verdict in words: which of its API's differences they show."""
    sign, tone = SIGNS[pair.verdict]
    if pair.a is None or pair.b is None:
        return sign, tone, pair.verdict.value
    count = 0 if pair.verdict is PairVerdict.SAME else model.differing(pair)
    parts = ["other order"] if pair.verdict is PairVerdict.ORDER else []
    parts += ["version"] if model.versions_differ(pair) else []
    parts += [f"{count} field{'s' if count > 1 else ''}"] if count else []
    if parts and pair.verdict is not PairVerdict.ORDER:
        sign, tone = SIGNS[PairVerdict.DIFFERENT]
    elif not parts:
        sign, tone = SIGNS[PairVerdict.SAME]
    return sign, tone, ", ".join(parts) or ("same here" if pair.verdict is PairVerdict.DIFFERENT else "same")


def cause_head(width: int) -> str:
    what, value, often, _ = _cause_widths(width)
    return f"{fit('what', what)} {fit('A', value)} {fit('B', value)} {fit('count', often)}{' ' if often else ''}why"


def cause_cells(entry: DiffEntry, width: int, *, first: bool) -> list[Cell]:
    """Return the cells of an entry: what differs, A and B, how often, why, which setting controls it. `first` if the
    entry above is of another API."""
    sign, tone = cause_sign(entry)
    what, value, often, why = _cause_widths(width)
    api, field = clean(entry.api) or "connections", cause_field(entry)
    room = what - cell_len(api) - 1
    if room < LEAST_FIELD:
        api, room = fit(api, max(4, what - LEAST_FIELD - 1)), LEAST_FIELD
    return [
        (f"{sign} ", tone), (f"{api} ", "strong" if first else "dim"), (_field(entry.part, field, room), ""), (" ", ""),
        (fit(clean(entry.a) or NOTHING, value), "a"), (" ", ""), (fit(clean(entry.b) or NOTHING, value), "b"),
        (f" {fit(_often(entry), often)}" if often else "", "dim"), (" ", ""), (fit(_why(entry, width), why), "dim"),
    ]  # fmt: skip


def _cause_widths(width: int) -> tuple[int, int, int, int]:
    """Return the widths of what, each value, count, why, in cells."""
    often = 9 if width >= WIDE else 0
    room = width - 2 - 3 - (often + 1 if often else 0)
    what, value = room * 36 // 100, room * (19 if width >= WIDE else 23) // 100
    return what, value, often, room - what - 2 * value


def cause_sign(entry: DiffEntry) -> Cell:
    if entry.reason is DiffReason.ORDER:
        return SIGNS[PairVerdict.ORDER]
    if entry.reason is DiffReason.ONE_SIDE or not entry.a or not entry.b:
        if entry.row_a is None:
            return SIGNS[PairVerdict.ONLY_B]
        if entry.row_b is None:
            return SIGNS[PairVerdict.ONLY_A]
    return SIGNS[PairVerdict.DIFFERENT]


def cause_field(entry: DiffEntry) -> str:
    """Return what of an API an entry is about."""
    if entry.path:
        return clean(" ".join(filter(None, (entry.path, entry.subject)))) if entry.api else "all"
    return clean(entry_name(entry))


def _often(entry: DiffEntry) -> str:
    if entry.reason in (DiffReason.COUNT, DiffReason.ONE_SIDE) and not entry.path:
        return ""
    a, b = entry.count_a, entry.count_b
    return f"{a:,}×" if a == b or not b else f"{b:,}×" if not a else f"{a:,} vs {b:,}"


def _field(part: str, path: str, width: int) -> str:
    """Return a field with the arrow of its message; of a long path the end, which says most."""
    arrow = PARTS[part]
    return arrow + fit(path, width - len(arrow), tail=True)


def _why(entry: DiffEntry, width: int) -> str:
    setting = " · ".join(dict.fromkeys(name for _, name in entry.settings))
    words = [f"set by {setting}" if setting else "", entry_reason(entry)]
    if width >= WIDER:
        words.append(entry_explanation(entry))
    return clean(" · ".join(filter(None, words)))


def cause_text(entry: DiffEntry) -> str:
    """Return all of an entry in one line: first the settings, then what follows from it, which may be long."""
    block = entry_block(entry)
    more = "".join(f" · {words}" for words in reversed(block.details))
    return f"{clean(entry.api)} {block.text} · {block.reason}{more}".strip()


def line_head(width: int) -> str:
    path, value, _ = _line_widths(width)
    return f"{fit('field', path)} {fit('A', value)} {fit('B', value)} why"


def line_cells(model: DiffModel, line: FieldLine, width: int) -> list[Cell]:
    """Return the cells of one field of a pair: the values of both sides."""
    path, value, why = _line_widths(width)
    sign, tone = line_sign(line)
    quiet = "dim" if tone == "dim" else ""
    texts = [line_value(model, side, line) for side in SIDES]
    if texts[0] == texts[1] and line.difference is not None:  # the bytes are the same, their meaning is not
        texts = [clean(value) for value in line.values]
    return [
        (f"{sign} ", tone), (_field(line.part, clean(line.path), path), quiet), (" ", ""),
        (fit(texts[0], value), quiet or "a"), (" ", ""), (fit(texts[1], value), quiet or "b"), (" ", ""),
        (fit(line_why(line), why), "dim"),
    ]  # fmt: skip


def _line_widths(width: int) -> tuple[int, int, int]:
    """Return the widths of the path, each value, why, in cells."""
    room = width - 2 - 3
    path, value = room * 34 // 100, room * 22 // 100
    return path, value, room - path - 2 * value


def line_sign(line: FieldLine) -> Cell:
    if line.alike:
        return SIGNS[PairVerdict.SAME]
    if line.is_ignored:
        return SIGNS[PairVerdict.MORE]
    if line.part and line.where[0] is None:
        return SIGNS[PairVerdict.ONLY_B]
    if line.part and line.where[1] is None:
        return SIGNS[PairVerdict.ONLY_A]
    return SIGNS[PairVerdict.DIFFERENT]


def line_value(model: DiffModel, side: int, line: FieldLine) -> str:
    """Return a side's value: as the wire has it, else in the comparison's words."""
    if line.part and line.where[side] is None:
        return NOTHING
    node = model.node(side, line)
    where = line.where[side]
    if node is None or node.children or (where and node.name != where[-1]):
        return clean(line.values[side])
    return " ".join(filter(None, value_words(node)))


def line_why(line: FieldLine) -> str:
    found = line.difference
    if not line.part:
        return "" if line.alike else DiffReason.VERSION.value
    if found is None:
        return "ignored" if line.is_ignored else ""
    words = clean(name_sides(found.explanation))
    return (
        words if words and found.reason is DiffReason.VERSION else ": ".join(filter(None, (found.reason.value, words)))
    )


def line_text(model: DiffModel, line: FieldLine) -> str:
    """Return a field in one line, for the clipboard."""
    name = f"{line.part}.{clean(line.path)}" if line.part else line.path
    a, b = (line_value(model, side, line) for side in SIDES)
    why = line_why(line)
    return f"{name}: {a} vs {b}{f' ({why})' if why not in ('', name) else ''}"


def shared(words: list[str], room: int) -> list[str]:
    """Fit two texts into `room` cells: each gets half of them, and what the other does not need. Of texts whose
    beginnings do not tell them apart the ends are kept."""
    half = max(0, room) // 2
    lengths = [cell_len(each) for each in words]
    rooms = [max(half, room - length) for length in reversed(lengths)]
    sizes = list(map(min, lengths, rooms))
    fitted = [fit(each, size) for each, size in zip(words, sizes, strict=True)]
    is_told = fitted[0] != fitted[1] or words[0] == words[1]
    return fitted if is_told else [fit(each, size, tail=True) for each, size in zip(words, sizes, strict=True)]


NAMES: Final = ("A", "B")
SHORT_TITLE, LONG_TITLE = 76, 118
"""Cells of the title below which it is short, and from which on it names the clients."""
MIN_NAME: Final = 8
"""Minimum cells of a side's name."""


def diff_title(
    ends: tuple[DiffSide, DiffSide], comparison: DiffResult | None, progress: str, matched: int, width: int
) -> Text:
    """Return the title in `width` cells. `progress` stands in place of the result, if it is not empty; `matched` is how
    many pairs the user matched by hand."""
    state = progress or _result(comparison, matched, short=width < SHORT_TITLE)
    clients = (comparison.a.clients, comparison.b.clients) if comparison is not None else ((), ())
    room = max(2 * MIN_NAME, width - cell_len(state) - len("A   ⇄  B ") - 2)
    names = shared([clean(side.label) for side in ends], room)
    client_names = [clean(f" {of_side[0]}") if of_side else "" for of_side in clients]
    client_names = shared(client_names, room - sum(map(cell_len, names))) if width >= LONG_TITLE else ["", ""]
    title = Text()
    for side, name in enumerate(NAMES):
        title.append("  ⇄  " if side else "").append(name, "bold reverse").append(f" {names[side]}", "bold")
        title.append(client_names[side], "dim")
    return with_state(title, state, width, "bold")


def _result(comparison: DiffResult | None, matched: int, *, short: bool) -> str:
    if comparison is None:
        return ""
    count = len(comparison.entries)
    words = "the same" if not count else f"{count} ≠" if short else f"{count} difference{'s' if count > 1 else ''}"
    by_hand = f" · {matched} by hand" if matched else ""
    if comparison.not_compared:
        return f"{words}{by_hand} · partly (i)" if short else f"{words}{by_hand} · partly captured (i)"
    return f"{words}{by_hand}" if short else f"{words}{by_hand} · {len(comparison.ignored)} ignored (i)"


def exact_result(model: DiffModel) -> str:
    """Return the result for two exchanges that are compared as the wire has them."""
    if model.pair is None or model.pair.a is None or model.pair.b is None:
        return "nothing to compare"
    words = counted(model.unlike, "field differs", "fields differ") if model.unlike else "all fields are equal"
    return f"{words}, except masked secrets" if model.is_masked else words
