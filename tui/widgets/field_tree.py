"""The fields of a message as a tree. Children are added when a node opens, long arrays in chunks.

Past some ten thousand visible nodes Textual's tree takes 200 ms to collapse one, so only one chunk opens at once.
"""

from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.css.styles import RenderStyles
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from dissector.core.text import clean
from dissector.exchange.tls_words import HandshakeField
from dissector.protocol.tree import Node
from tui.exchange_model import TracedMessage
from tui.labels import field_label, size_words
from tui.theme import Inks, inks
from tui.value_parts import JSON_VALUE, LeafLine, may_open, text_lines
from tui.widgets.draggable_border import DraggableBorder
from tui.widgets.scrolling import PlacedScrollBar, TypedNumber

CHUNK = 100
OPEN_AT_FIRST = 12
"""Structures with so few children are open at first."""

ARROW = "▸ "
MOST_MEASURED = 100
"""Lines of which it is looked whether they fit."""
_TOGGLES = Style.from_meta({"toggle": True})
"""Where a click opens a node: `Tree` looks for it."""
_SIZE = Style(dim=True, bold=False)
Item = Node | range | HandshakeField | LeafLine
"""A field, or the indices of a chunk of its parent's children; a line of a long text; or a line about a TLS handshake,
which has no bytes."""


class FieldTree(Tree[Item], PlacedScrollBar, TypedNumber, DraggableBorder):
    """Shows a message; posts which field is under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Down", show=False, id="tree.down"),
        Binding("k", "cursor_up", "Up", show=False, id="tree.up"),
        Binding("enter", "toggle_node", "Toggle", show=False, tooltip="Open or close the field", id="tree.toggle"),
        Binding("l,right", "open", "Open", show=False, id="tree.open"),
        Binding("h,left", "shut", "Close", show=False, id="tree.close"),
        Binding("g", "scroll_home_cursor", "First", show=False, tooltip="First field", id="tree.first"),
        Binding("G", "scroll_end_cursor", "Last", show=False, tooltip="Last field", id="tree.last"),
    ]

    class FieldChosen(Message):
        """The cursor moved to another field, of a message that may not be shown any more."""

        def __init__(self, node: Node) -> None:
            super().__init__()
            self.node = node

    class Unfolded(Message):
        """A field was opened: there are more lines."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self._bindings.key_to_bindings.pop("space", None)  # Enter opens a field; space is the screen's, in every pane
        self.show_root = False
        self.show_guides = False
        self.auto_expand = False
        self.guide_depth = 2
        self._traced: TracedMessage | None = None
        self._lit: set[str] = set()
        """Paths of the hits of a search."""
        self._known_inks: tuple[str, Inks] = "", {}
        """The styles of the theme with a name."""
        self.shows_encoding = False
        """Whether counts, sizes and empty tagged fields have lines of their own; one of them that was chosen has."""
        self._across = 0
        """Cells of a line, without the scroll bar's, since lines were drawn last."""
        self._known_styles: dict[tuple[str, ...], RenderStyles] = {}
        """Those of parts of the tree, which each line asks for three times and Textual makes each time."""

    def light_up(self, paths: set[str]) -> None:
        """Highlight these fields as hits, until another message is shown."""
        self._lit = paths
        self.notify_style_update()

    def show(self, traced: TracedMessage | None, handshake: Sequence[HandshakeField] = ()) -> None:
        """Show another message, header and body open; without a message what a handshake says."""
        self._traced = traced
        self._lit = set()
        self.clear()
        self.cursor_line = -1
        if traced is None:
            for field in handshake:
                self.root.add_leaf(field.name, data=field)
            return
        self.root.data = traced.message.tree
        self._fill(self.root)
        self.root.expand()
        for part in self.root.children:
            self._open_small(part)
        if traced.records is not None:
            self._add(self.root, [traced.records.tree])

    def _open_small(self, item: TreeNode[Item]) -> None:
        """Open nodes that are short enough to be read at a glance."""
        if isinstance(item.data, Node) and 0 < len(item.data.children) <= OPEN_AT_FIRST:
            self._fill(item)
            item.expand()
            for child in item.children:
                self._open_small(child)

    def _fill(self, item: TreeNode[Item]) -> None:
        """Add an item's children, once."""
        if item.children:
            return
        if isinstance(item.data, range):
            parent = item.parent
            assert parent is not None
            self._add(item, self._siblings(parent, item))
        elif isinstance(item.data, Node):
            children = self._parts(item.data)
            if not children:
                self._add_lines(item, item.data)
                item.allow_expand = bool(item.children)
                return
            if len(children) <= CHUNK + 1:
                self._add(item, children)
                return
            for start in range(0, len(children), CHUNK):
                rows = range(start, min(start + CHUNK, len(children)))
                item.add(Text(f"{rows.start}…{rows.stop - 1}", "dim"), data=rows)

    def _parts(self, node: Node) -> Sequence[Node]:
        return self._traced.parts(node) if self._traced is not None else node.children

    def _add_lines(self, item: TreeNode[Item], node: Node) -> None:
        """Add the lines of a long text, as wide as the pane."""
        depth = -1
        above: TreeNode[Item] | None = item
        while above is not None:
            depth, above = depth + 1, above.parent
        across = self.content_region.width - self.styles.scrollbar_size_vertical
        for line in text_lines(node, across - self.guide_depth * depth - len(ARROW)):
            item.add_leaf("", data=line)

    def _add(self, item: TreeNode[Item], nodes: Sequence[Node]) -> None:
        for node in self._shown(nodes):
            item.add(node.name, data=node, allow_expand=self._opens(node))

    def _shown(self, nodes: Sequence[Node]) -> Sequence[Node]:
        if self.shows_encoding:
            return nodes
        return [node for node in nodes if node.type == JSON_VALUE or not node.is_encoding]

    def _opens(self, node: Node) -> bool:
        if not node.children:
            return may_open(node)
        return any(self.shows_encoding or not child.is_encoding for child in node.children)

    def show_encoding(self, *, shown: bool) -> None:
        """Show the parts of the encoding, or hide them; what was open is closed, but for the chosen field."""
        chosen = self.cursor_node.data if self.cursor_node is not None else None
        self.shows_encoding = shown
        if self._traced is not None:
            self.show(self._traced)
            if isinstance(chosen, Node):
                self.reveal(chosen)

    @property
    def _inks(self) -> Inks:
        if self._known_inks[0] != self.app.theme:
            self._known_inks = self.app.theme, inks(self.app.theme_variables)
        return self._known_inks[1]

    def get_component_styles(self, *names: str) -> RenderStyles:
        if names not in self._known_styles:
            self._known_styles[names] = super().get_component_styles(*names)
        return self._known_styles[names]

    def notify_style_update(self) -> None:
        self._known_styles.clear()
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        across = self.scrollable_content_region.width
        if across != self._across:
            self._across = across
            self._line_cache.clear()  # its lines may be those of before a scroll bar came, or went
        return super().render_lines(crop)

    def fits(self, across: int) -> bool:
        """Return whether each line that is open, down to the last one that the pane shows, has room in so many cells,
        but for sizes; a scroll bar takes one."""
        stack = [(item, 0) for item in reversed(self.root.children)]
        lines, height = 0, max(1, self.size.height)
        shown = min(MOST_MEASURED, round(self.scroll_offset.y) + height)
        left = across
        while stack and lines < shown:
            item, indent = stack.pop()
            lines += 1
            if isinstance(item.data, Node):
                left = min(left, across - indent - len(ARROW) - field_label(item.data).cell_len)
            if left < 0:
                return False
            if item.is_expanded:
                stack += [(child, indent + self.guide_depth) for child in reversed(item.children)]
        return left > 0 or not stack

    def get_label_width(self, node: TreeNode[Item]) -> int:
        """Lines are as wide as the pane, so no label has to be made to know it."""
        return 1

    def render_label(self, node: TreeNode[Item], base_style: Style, style: Style) -> Text:
        """Return a field's line; the cursor's line has one color."""
        arrow = ("▾ " if node.is_expanded else ARROW) if node.allow_expand else "  "
        label = Text().append(arrow, base_style + _TOGGLES if node.allow_expand else base_style)
        if isinstance(node.data, Node):
            offset = self._traced.log_offset(node.data) if self._traced is not None else None
            words = field_label(node.data, self._inks, offset)
        elif isinstance(node.data, LeafLine):
            words = Text(node.data.text, self._inks.get("success", Style.null()))
        elif isinstance(node.data, HandshakeField):
            words = Text.assemble(node.data.name, " ", (clean(node.data.value), "bold"))
        else:
            words = Text(f"[{node.label}]", "dim")
        if isinstance(node.data, Node) and node.data.path in self._lit:
            words.stylize("underline bold")
        label.append_text(words)
        if isinstance(node.data, Node):
            self._append_size(label, node, f" {size_words(node.data)}")
        label.stylize_before(base_style + style)
        if self.app.no_color and node is self.cursor_node:
            label.stylize(Style(reverse=True) if self.has_focus else Style(underline=True, bold=True))
        return label

    def _append_size(self, label: Text, item: TreeNode[Item], size: str) -> None:
        """Put the size of a field at the right of its line, if there is room beside a label that fits in the line."""
        indent = -self.guide_depth
        while (parent := item.parent) is not None:
            item, indent = parent, indent + self.guide_depth
        room = self._across - indent - len(size)
        if label.cell_len > room:
            label.truncate(room + len(size), overflow="ellipsis")
        elif room > 0:
            label.truncate(room, pad=True)
            label.append(size, _SIZE)

    def on_resize(self) -> None:
        """Keep the cursor in view; long texts that are open get lines of the new width."""
        for item in self._open_texts():
            item.remove_children()
            self._fill(item)
        if self.cursor_line >= 0:
            self.call_after_refresh(self.scroll_to_line, self.cursor_line, animate=False)

    def _open_texts(self) -> list[TreeNode[Item]]:
        """Return the fields whose long texts are open."""
        found, stack = [], [self.root]
        while stack:
            item = stack.pop()
            if item.children and isinstance(item.children[0].data, LeafLine):
                found.append(item)
            stack += item.children
        return found

    def on_click(self, event: events.Click) -> None:
        """A click selects a field, a click on its arrow opens it (both by `Tree`), and so does a double click."""
        node = self.cursor_node
        if event.chain == 2 and node is not None and not event.style.meta.get("toggle"):
            node.toggle()

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        if self._has(event.node):
            self._fill(event.node)
            self.post_message(self.Unfolded())

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Item]) -> None:
        item = event.node
        if isinstance(item.data, LeafLine) and item.parent is not None:
            item = item.parent
        if isinstance(item.data, Node) and self._has(item):
            self.post_message(self.FieldChosen(item.data))

    def _has(self, item: TreeNode[Item]) -> bool:
        """Return whether an item is still in the tree: another message may be shown since."""
        while item.parent is not None:
            item = item.parent
        return item is self.root

    def action_cursor_down(self) -> None:
        self._move(self.take_number() or 1)

    def action_cursor_up(self) -> None:
        self._move(-(self.take_number() or 1))

    def _move(self, lines: int) -> None:
        """Move the cursor; without one, the first line down is the first, the first one up the last."""
        start = self.cursor_line if self.cursor_line >= 0 or lines > 0 else self.last_line + 1
        self._go_to_line(start + lines)

    def _go_to_line(self, line: int) -> None:
        self.cursor_line = max(0, line)
        self.scroll_to_line(self.cursor_line, animate=False)

    def choose_first(self) -> None:
        """Select the field under the cursor, or the first one."""
        self.cursor_line = max(0, self.cursor_line)
        item = self.cursor_node
        if item is not None and isinstance(item.data, Node):
            self.post_message(self.FieldChosen(item.data))

    def reveal(self, target: Node) -> None:
        """Open the ancestors of a field and move the cursor to it."""
        if self._traced is None:
            return
        item = self.root
        for node in self._traced.chain(target)[1:]:
            self._fill(item)
            item.expand()
            found = self._child(item, node)
            if found is None:
                return
            item = found
        # lines are laid out at the next refresh: only then the item has a line to go to
        self.call_after_refresh(self.move_cursor, item)
        self.call_after_refresh(self.scroll_to_node, item, animate=False)

    def _child(self, item: TreeNode[Item], node: Node) -> TreeNode[Item] | None:
        for child in item.children:
            if child.data is node:
                return child
            chunk = isinstance(child.data, range) and isinstance(item.data, Node)
            if chunk and node in self._siblings(item, child):
                self._fill(child)
                child.expand()
                return self._child(child, node)
        if node.is_encoding and isinstance(item.data, Node):
            return item.add(node.name, data=node, before=_place(item, node), allow_expand=self._opens(node))
        return None

    def _siblings(self, item: TreeNode[Item], chunk: TreeNode[Item]) -> Sequence[Node]:
        """Return the fields of a chunk of an item's children."""
        assert isinstance(item.data, Node)
        assert isinstance(chunk.data, range)
        return self._parts(item.data)[chunk.data.start : chunk.data.stop]

    def action_open(self) -> None:
        if self.cursor_node is not None and self.cursor_node.allow_expand:
            self._fill(self.cursor_node)
            self.cursor_node.expand()

    def action_shut(self) -> None:
        """Close the field, or go to its parent."""
        item = self.cursor_node
        if item is None:
            return
        if item.is_expanded and item.allow_expand:
            item.collapse()
        elif item.parent is not None and item.parent is not self.root:
            self.move_cursor(item.parent)

    def action_scroll_home_cursor(self) -> None:
        """Go to the first line, or to the one whose number was typed before."""
        self._go_to_line((self.take_number() or 1) - 1)

    def action_scroll_end_cursor(self) -> None:
        """Go to the last line, or to the one whose number was typed before."""
        number = self.take_number()
        self._go_to_line(self.last_line if number is None else number - 1)


def _place(item: TreeNode[Item], node: Node) -> int | None:
    """Where among an item's children a field of it belongs; None for the end."""
    assert isinstance(item.data, Node)
    later = item.data.children[item.data.children.index(node) + 1 :]
    return next((at for at, child in enumerate(item.children) if child.data in later), None)
