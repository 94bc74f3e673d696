"""Filters, profiles and coloring rules that the user saved: `B` and `P`, with a key for each."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import work
from textual.binding import Binding, BindingType

from dissector.core.text import clean, shortened
from tui.features.colors import ColorsFeature
from tui.features.columns import ColumnsFeature
from tui.features.filter import FilterFeature
from tui.key_groups import FIND, LIST
from tui.list_columns import ListColumns
from tui.messages import SaveEntry
from tui.row_colors import HUES
from tui.saved import COLOR_RULES, FILTERS, KEYS, PROFILES, Profile, Setting
from tui.screens.menu import Choice, Menu
from tui.screens.prompt import Prompt

LONGEST = 60
"""Characters of a filter in a menu."""


class SavedFiltersFeature(FilterFeature):
    """B offers the saved filters."""

    FEATURE = FIND

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("B", "saved_filters", "Saved filters", show=False, id="main.saved_filters",
                tooltip="Apply a saved filter, or save this one under a name; color rows by a filter"),
    ]  # fmt: skip

    @property
    def _filter_text(self) -> str:
        return self._run.filter.text if self._run is not None else ""

    @work(group="saved", exclusive=True)
    async def action_saved_filters(self) -> None:
        """Apply a filter, save the one that is applied, color rows by it, or delete one."""
        saved, text = self.appearance.saved, self._filter_text
        offered: list[tuple[Choice, Callable[[], object]]] = [
            (Choice(clean(name), clean(shortened(each, LONGEST)), key), partial(self.apply_filter, each))
            for (name, each), key in zip(saved.filters.items(), KEYS, strict=False)
        ]
        if text:
            offered.append((Choice("Save", f"this filter: {clean(shortened(text, LONGEST))}", "s"), self._save_filter))
            offered.append((Choice("Color", "the rows that match it", "k"), self._color_by_filter))
        if saved.filters or saved.color_rules:
            offered.append((Choice("Delete…", "a filter or a coloring rule", "d"), self._delete_saved))
        if not offered:
            self.notify("apply a filter with / first, then B saves it under a name", timeout=4)
            return
        at = await self.app.push_screen_wait(Menu("Saved filters", [choice for choice, _ in offered]))
        if at is not None:
            offered[at][1]()

    @work(group="saving", exclusive=True)
    async def _save_filter(self) -> None:
        text = self._filter_text
        name = await self.app.push_screen_wait(Prompt("Save the filter as"))
        if name and name.strip():
            self.keep(FILTERS, name.strip(), text)

    @work(group="saving", exclusive=True)
    async def _color_by_filter(self) -> None:
        text = self._filter_text
        choices = [Choice(f"Hue {n}", "", str(n)) for n in range(1, HUES + 1)]
        at = await self.app.push_screen_wait(Menu("Color matching rows", choices))
        if at is not None:
            self.keep(COLOR_RULES, text, at + 1)
            self._list.update_rows()

    @work(group="saving", exclusive=True)
    async def _delete_saved(self) -> None:
        saved = self.appearance.saved
        offered = [(FILTERS, name) for name in saved.filters] + [(COLOR_RULES, name) for name in saved.color_rules]
        choices = [Choice(clean(shortened(name, LONGEST)), table.replace("_", " ")) for table, name in offered]
        at = await self.app.push_screen_wait(Menu("Delete", choices))
        if at is not None:
            self.keep(*offered[at], None)
            self._list.update_rows()

    def keep(self, table: str, name: str, value: Setting | Mapping[str, Setting] | None) -> None:
        """Keep an entry of the configuration, now and for the next start; None deletes it."""
        entries = getattr(self.appearance.saved, table)
        if value is None:
            entries.pop(name, None)
        elif not isinstance(value, Mapping):
            entries[name] = value
        self.post_message(SaveEntry(table, name, value))
        self.notify(clean(f"{name} {'deleted' if value is None else 'saved'}"), markup=False, timeout=2)


class ProfilesFeature(SavedFiltersFeature, ColumnsFeature, ColorsFeature):
    """P offers the profiles."""

    FEATURE = LIST

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("P", "profiles", "Profiles", show=False, id="main.profiles",
                tooltip="Switch to a profile: filter, columns and colors together; or save this one"),
    ]  # fmt: skip

    @work(group="saved", exclusive=True)
    async def action_profiles(self) -> None:
        """Switch to a profile, save what is shown as one, or delete one."""
        profiles = self.appearance.saved.profiles
        choices = [
            Choice(clean(name), clean(_described(each)), key)
            for (name, each), key in zip(profiles.items(), KEYS, strict=False)
        ]
        shown: Sequence[Profile] = [each for each, _ in zip(profiles.values(), KEYS, strict=False)]
        more = [Choice("Save", "filter, columns and colors as they are", "s")]
        more += [Choice("Delete…", "a profile", "d")] if profiles else []
        at = await self.app.push_screen_wait(Menu("Profiles", [*choices, *more]))
        if at is None:
            return
        if at < len(shown):
            self._switch_to(shown[at])
        else:
            (self._save_profile, self._delete_profile)[at - len(shown)]()

    def _switch_to(self, profile: Profile) -> None:
        columns = None if profile.columns is None else ListColumns.of([*profile.columns]).chosen
        self._choose_columns(columns)
        self.appearance.color_by = profile.colors
        self._draw_colors()
        self.apply_filter(profile.filter)

    @work(group="saving", exclusive=True)
    async def _save_profile(self) -> None:
        columns = self.appearance.columns.words()
        profile = Profile(self._filter_text, None if columns is None else tuple(columns), self.appearance.color_by)
        name = await self.app.push_screen_wait(Prompt("Save filter, columns and colors as"))
        if name and name.strip():
            self.appearance.saved.profiles[name.strip()] = profile
            self.keep(PROFILES, name.strip(), profile.values())

    @work(group="saving", exclusive=True)
    async def _delete_profile(self) -> None:
        names = [*self.appearance.saved.profiles]
        at = await self.app.push_screen_wait(Menu("Delete", [Choice(clean(name)) for name in names]))
        if at is not None:
            self.keep(PROFILES, names[at], None)


def _described(profile: Profile) -> str:
    columns = "default columns" if profile.columns is None else f"{len(profile.columns)} columns"
    return " · ".join(filter(None, (shortened(profile.filter, LONGEST), columns, f"by {profile.colors.value}")))
