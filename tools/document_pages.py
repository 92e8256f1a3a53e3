"""Write the pages beside the code as pages of the documentation, with links that hold there."""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "developers"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)([\w./-]+)((?:#[\w-]*)?)\)")


def write() -> None:
    """Write each page beside a folder into `developers/design/`, and the text of the architecture beside them."""
    (PAGES / "design").mkdir(exist_ok=True)
    for old in (PAGES / "design").glob("*.md"):
        old.unlink()
    (PAGES / "design" / "_architecture.md").write_text(document(ARCHITECTURE, PAGES), encoding="utf-8")
    for page in beside_code():
        target = PAGES / f"{_name(page)}.md"
        target.write_text(document(page, target.parent), encoding="utf-8")


def beside_code() -> list[Path]:
    """The pages of the folders of the package."""
    return sorted((ROOT / "pcbatch").rglob("README.md"))


def document(page: Path, folder: Path) -> str:
    """The text of a page whose links hold in a folder of the documentation; those to other files are left out."""
    places = {ARCHITECTURE: PAGES / "architecture.md"} | {page: PAGES / f"{_name(page)}.md" for page in beside_code()}

    def linked(found: re.Match[str]) -> str:
        target = (page.parent / found[2]).resolve()
        target = places.get(target, target)
        if not target.is_relative_to(ROOT / "docs"):
            return found[1]
        return f"[{found[1]}]({Path(os.path.relpath(target, folder)).as_posix()}{found[3]})"

    return LINK.sub(linked, page.read_text("utf-8"))


def _name(page: Path) -> str:
    return "design/" + "_".join(page.parent.relative_to(ROOT / "pcbatch").parts)
