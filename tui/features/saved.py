"""Filters, profiles and coloring rules that the user saved: `B` and `P`, with a key for each."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual.binding import Binding

from dissector.core.text import clean, shortened
from tui.feature import FIND, LIST, ScreenFeature, work
from tui.features.filter import FilterFeature
from tui.features.list_appearance import ListAppearanceFeature
from tui.list_columns import ListColumns
from tui.messages import SaveEntry
from tui.row_colors import HUES
from tui.saved import COLOR_RULES, FILTERS, KEYS, PROFILES, Profile, Setting
from tui.screens.core_screen import CoreScreen
from tui.screens.dialog import Choice, Menu, Prompt

LONGEST = 60
"""Characters of a filter in a menu."""


class SavedFiltersFeature(ScreenFeature[CoreScreen]):
    """B offers the saved filters."""

    GROUP = FIND

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("B", "saved_filters", "Saved filters", show=False, id="main.saved_filters",
                tooltip="Apply a saved filter, or save this one under a name; color rows by a filter"),
    ]  # fmt: skip

    @work(group="saved", exclusive=True)
    async def action_saved_filters(self) -> None:
        """Apply a filter, save the one that is applied, color rows by it, or delete one."""
        saved, text = self.screen.appearance.saved, self.screen.feature(FilterFeature).text
        offered: list[tuple[Choice, Callable[[], object]]] = [
            (
                Choice(clean(name), clean(shortened(each, LONGEST)), key),
                partial(self.screen.feature(FilterFeature).apply, each),
            )
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
        text = self.screen.feature(FilterFeature).text
        name = await self.app.push_screen_wait(Prompt("Save the filter as"))
        if name and name.strip():
            keep(self.screen, FILTERS, name.strip(), text)

    @work(group="saving", exclusive=True)
    async def _color_by_filter(self) -> None:
        text = self.screen.feature(FilterFeature).text
        choices = [Choice(f"Hue {n}", "", str(n)) for n in range(1, HUES + 1)]
        at = await self.app.push_screen_wait(Menu("Color matching rows", choices))
        if at is not None:
            keep(self.screen, COLOR_RULES, text, at + 1)
            self.screen.exchange_list.update_rows()

    @work(group="saving", exclusive=True)
    async def _delete_saved(self) -> None:
        saved = self.screen.appearance.saved
        offered = [(FILTERS, name) for name in saved.filters] + [(COLOR_RULES, name) for name in saved.color_rules]
        choices = [Choice(clean(shortened(name, LONGEST)), table.replace("_", " ")) for table, name in offered]
        at = await self.app.push_screen_wait(Menu("Delete", choices))
        if at is not None:
            keep(self.screen, *offered[at], None)
            self.screen.exchange_list.update_rows()


class ProfilesFeature(ScreenFeature[CoreScreen]):
    """P offers the profiles."""

    GROUP = LIST

    BINDINGS: ClassVar[list[Binding]] = [
        Binding("P", "profiles", "Profiles", show=False, id="main.profiles",
                tooltip="Switch to a profile: filter, columns and colors together; or save this one"),
    ]  # fmt: skip

    @work(group="saved", exclusive=True)
    async def action_profiles(self) -> None:
        """Switch to a profile, save what is shown as one, or delete one."""
        profiles = self.screen.appearance.saved.profiles
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
        rows = self.screen.feature(ListAppearanceFeature)
        rows.choose_columns(columns)
        rows.color_rows(profile.colors)
        self.screen.feature(FilterFeature).apply(profile.filter)

    @work(group="saving", exclusive=True)
    async def _save_profile(self) -> None:
        columns = self.screen.appearance.columns.words()
        text = self.screen.feature(FilterFeature).text
        profile = Profile(text, None if columns is None else tuple(columns), self.screen.appearance.color_by)
        name = await self.app.push_screen_wait(Prompt("Save filter, columns and colors as"))
        if name and name.strip():
            self.screen.appearance.saved.profiles[name.strip()] = profile
            keep(self.screen, PROFILES, name.strip(), profile.values())

    @work(group="saving", exclusive=True)
    async def _delete_profile(self) -> None:
        names = [*self.screen.appearance.saved.profiles]
        at = await self.app.push_screen_wait(Menu("Delete", [Choice(clean(name)) for name in names]))
        if at is not None:
            keep(self.screen, PROFILES, names[at], None)


def keep(screen: CoreScreen, table: str, name: str, value: Setting | Mapping[str, Setting] | None) -> None:
    """Keep an entry of the configuration, now and for the next start; None deletes it."""
    entries = getattr(screen.appearance.saved, table)
    if value is None:
        entries.pop(name, None)
    elif not isinstance(value, Mapping):
        entries[name] = value
    screen.post_message(SaveEntry(table, name, value))
    screen.notify(clean(f"{name} {'deleted' if value is None else 'saved'}"), markup=False, timeout=2)


def _described(profile: Profile) -> str:
    columns = "default columns" if profile.columns is None else f"{len(profile.columns)} columns"
    return " · ".join(filter(None, (shortened(profile.filter, LONGEST), columns, f"by {profile.colors.value}")))
