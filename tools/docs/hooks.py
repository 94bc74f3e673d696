"""What mkdocs calls while it builds the site: it gets the generated pages, and those that stand in the root folder."""

import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs is started from its own folder

from tools.docs.generated_pages import PAGES  # noqa: E402  # found by that path

OF_ROOT: Final = {
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
}
"""Documents that stand elsewhere, by their places on the site."""
_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add pages that are no files of `docs/`."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    for source, name in OF_ROOT.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, name, content=_with_links(text, Path(source).parent)))
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Files) -> str:
    """Lead links of `docs/` to where the site has their documents."""
    return markdown if page.file.abs_src_path is None else _with_links(markdown, Path("docs"))


def _with_links(text: str, folder: Path) -> str:
    """Return a document with links that fit the site. What the site does not have becomes plain words."""

    def link(found: re.Match[str]) -> str:
        words, place, heading = found.groups("")
        path = _normal(folder / place)
        target = OF_ROOT.get(path, path.removeprefix("docs/") if path.startswith("docs/") else None)
        return words if target is None else f"[{words}]({target}{heading})"

    return _LINK.sub(link, text)


def _normal(path: Path) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
