"""All findings of a capture, by kind; and what one means: what was seen, why it happens, what to do."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.style import Style
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static, Tree
from textual.widgets.tree import TreeNode

from dissector.core.finding import Finding
from dissector.core.text import clean, counted, seconds
from dissector.findings.registry import explain
from tui.findings_model import FindingGroup, FindingPlace, FindingsModel
from tui.labels import MARKS
from tui.list_columns import elided
from tui.screens.dialog import Dialog
from tui.theme import bold

SECONDS_BETWEEN = 0.3
_LONGEST_NAME = 16
Item = FindingGroup | tuple[int, Finding]


class FindingTree(Tree[Item]):
    """Lines as wide as the pane: the cursor covers all of one."""

    def render_label(self, node: TreeNode[Item], base_style: Style, style: Style) -> Text:
        label = super().render_label(node, base_style, style)
        room = self.scrollable_content_region.width - (0 if isinstance(node.data, FindingGroup) else self.guide_depth)
        if room > 0:
            label.truncate(room, overflow="ellipsis", pad=True)
            label.stylize_before(base_style + style)
        return label


class FindingsScreen(Dialog[tuple[int, Finding] | None]):
    """Kinds with their counts; each opens to its rows. Returns the row and the finding to go to."""

    DEFAULT_CSS = """
    FindingsScreen { align: center middle; }
    #found { width: 96%; height: 1fr; margin: 1 0 0 0; background: $panel; border: round $primary;
             overflow-x: hidden; scrollbar-size: 1 1; }
    #found:focus { background-tint: $foreground 0%; }
    #about { width: 96%; height: auto; max-height: 5; background: $panel; padding: 0 1; }
    #far { width: 96%; height: 1; background: $panel; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,F", "dismiss", "Close", id="findings.close"),
        Binding("question_mark,i", "explain", "Explain", key_display="?", tooltip="Explain this kind of finding",
                id="findings.explain"),
        Binding("j", "down", "Down", show=False, id="findings.down"),
        Binding("k", "up", "Up", show=False, id="findings.up"),
    ]  # fmt: skip

    def __init__(self, findings: FindingsModel) -> None:
        super().__init__()
        self._findings = findings
        self._lines: dict[str, TreeNode[Item]] = {}
        self._drawn: tuple[int, int, int] | None = None
        """How many rows were analyzed, of how many, with how many findings, when the list was drawn."""

    def compose(self) -> ComposeResult:
        tree = FindingTree("", id="found")
        tree.show_root, tree.show_guides, tree.guide_depth = False, False, 2
        tree.border_title = "Findings"
        yield tree
        yield Static(id="about", markup=False)
        yield Static(id="far", markup=False)

    @property
    def _tree(self) -> Tree[Item]:
        return self.query_one("#found", Tree)

    def on_mount(self) -> None:
        self._tree.focus()
        self._tree.root.expand()
        self._show()
        self.set_interval(SECONDS_BETWEEN, self._look)
        self.app.theme_changed_signal.subscribe(self, lambda _: self._show())

    def _look(self) -> None:
        """Draw again if something was analyzed since: a terminal that nobody uses stays quiet."""
        if self._drawn != self._state():
            self._show()

    def _state(self) -> tuple[int, int, int]:
        return self._findings.done, self._findings.total, sum(group.count for group in self._findings.groups())

    def _show(self) -> None:
        """Draw the kinds so far, in the order in which they came, so that nothing moves under the cursor."""
        self._drawn = done, total, count = self._state()
        groups = self._findings.groups()
        for group in groups:
            if group.code not in self._lines:
                self._lines[group.code] = self._tree.root.add("", data=group)
            self._lines[group.code].set_label(_group_line(group, self._style(group)))
        if groups and self._tree.cursor_line < 0:
            self._tree.cursor_line = 0
        far = f"{100 * done // total}% analyzed" if done < total else "all analyzed" if total else "still reading"
        kinds = counted(len(groups), "kind")
        self._tree.border_subtitle = "enter opens · ? explains · esc closes" if groups else "esc closes"
        self.query_one("#far", Static).update(Text(f"{counted(count, 'finding')} of {kinds} · {far}"))

    def _style(self, group: FindingGroup) -> Style:
        """Return the color that its rows have in the list; a note has none."""
        severity = group.severity.value
        return bold(self.app.theme_variables[severity]) if severity in ("error", "warning") else Style(bold=True)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        group = event.node.data
        if isinstance(group, FindingGroup):
            event.node.remove_children()
            for place in self._findings.places(group):
                for n, (row, finding, time_ns) in enumerate(place.found):
                    when = seconds(time_ns - self._findings.start_ns)
                    line = Text().append(f"{row + 1:>7} ", "bold").append(f"{when:>11}  ")
                    line.append(_who(place, first=not n)).append(clean(finding.message))
                    event.node.add_leaf(line, data=(row, finding))
            if group.count > len(group.kept):
                event.node.add_leaf(
                    Text(f"{group.count - len(group.kept):,} more: filter with finding ==  {group.code}", "dim")
                )

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Item]) -> None:
        """Show all of the message under the cursor, which its line may cut; of a kind, what it means."""
        item = event.node.data
        known = explain(item.code) if isinstance(item, FindingGroup) else None
        words = item[1].message if isinstance(item, tuple) else known.what if known else ""
        self.query_one("#about", Static).update(Text(clean(words)))

    def on_tree_node_selected(self, event: Tree.NodeSelected[Item]) -> None:
        if isinstance(event.node.data, tuple):
            self.dismiss(event.node.data)

    def action_explain(self) -> None:
        node = self._tree.cursor_node
        if node is not None and node.data is not None:
            finding = node.data[1] if isinstance(node.data, tuple) else node.data.kept[0][1]
            self.app.push_screen(FindingDialog("Explanation", [finding]))

    def action_down(self) -> None:
        self._tree.action_cursor_down()

    def action_up(self) -> None:
        self._tree.action_cursor_up()


def _who(place: FindingPlace, *, first: bool) -> Text:
    """Return connection and client, faint below a line with the same ones."""
    name = elided(clean(place.client or "(no client id)"), _LONGEST_NAME)
    return Text(f"C{place.connection:<5} {set_cell_size(name, _LONGEST_NAME)}  ", "" if first else "dim")


def _group_line(group: FindingGroup, style: Style) -> Text:
    known = explain(group.code)
    title = known.title if known is not None else group.code
    mark = Text().append(f"{MARKS[group.severity.value]} {group.count:>7,}  ", style)
    return mark.append(clean(title), "bold").append(f"  {group.code}", "dim not bold")


def explanation(finding: Finding) -> Text:
    """Return where a finding is, and the explanation of its code."""
    text = Text()
    if finding.path:
        text.append(f"{clean(finding.path)}\n", "dim")
    known = explain(finding.code)
    if known is not None:
        text.append(f"\n{known.title} ({finding.code})\n", "bold underline")
        text.append(f"{known.what}\n")
        text.append("\nWhy  ", "bold").append(f"{known.why}\n")
        text.append("\nWhat to do  ", "bold").append(f"{known.what_to_do}\n")
    return text


class FindingDialog(Dialog[None]):
    """One finding, or all of a row."""

    DEFAULT_CSS = """
    FindingDialog { align: center middle; }
    #explained { width: 90; max-width: 96%; height: auto; max-height: 90%; background: $panel;
                 border: round $primary; padding: 0 1; scrollbar-size: 1 1; }
    #explained .note, #explained .warning, #explained .error { text-style: bold; }
    #explained .warning { color: $warning; }
    #explained .error { color: $error; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,i,question_mark,enter", "dismiss", "Close", id="finding.close"),
    ]

    def __init__(self, title: str, findings: Sequence[Finding]) -> None:
        super().__init__()
        self._title = title
        self._findings = findings

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="explained") as box:
            box.border_title = clean(self._title).replace("[", "\\[")
            box.border_subtitle = "esc closes"
            for finding in self._findings:
                heading = f"{MARKS[finding.severity.value]} {clean(finding.message)}"
                yield Static(Text(heading), markup=False, classes=finding.severity.value)
                yield Static(explanation(finding), markup=False)
