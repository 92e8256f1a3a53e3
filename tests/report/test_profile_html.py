"""`Profile.html`: a page that holds every line and block once, is whole, and asks for nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import pcbatch
from pcbatch.report.profile import Profile
from pcbatch.report.profile_html import _short

HELPER = """\
import pcbatch


@pcbatch.inline
def reduced(n):
    # </td></tr><script>alert("&lt;")</script>
    return n - (1 if n < 100 else 3)
"""
FUNCTIONS = """\
import pcbatch
import lines_helper


@pcbatch.batch
def even(n):
    if n <= 0 & ~0:
        return 1
    return odd(lines_helper.reduced(n))


LIMIT = 0  # belongs to neither


@pcbatch.batch
def odd(n):
    if n <= LIMIT:
        return 0

    return 2 * even(lines_helper.reduced(n)) - 1
"""
VOID = {"meta", "br", "hr", "link", "img", "input"}


@dataclass
class Row:
    """A row of a table."""

    attributes: dict[str, str | None]
    cells: list[tuple[str | None, str]] = field(default_factory=list)  # the class and the text of each


class Page(HTMLParser):
    """What a page consists of; tags that are not closed where they must be fail."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[Row] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.seen: Counter[str] = Counter()
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs)
        assert "src" not in found and "srcset" not in found and tag != "link"
        self.seen[tag] += 1
        self.ids += [found["id"]] if "id" in found else []  # type: ignore[list-item]
        self.links += [found["href"]] if "href" in found else []  # type: ignore[list-item]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append(Row(found))
        if tag in ("td", "th"):
            self.rows[-1].cells.append((found.get("class"), ""))
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "path"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif "td" in self.open or "th" in self.open:
            kind, text = self.rows[-1].cells[-1]
            self.rows[-1].cells[-1] = kind, text + data

    def lines(self, file: int) -> dict[int, Row]:
        """The rows of lines of a file, by number."""
        found = {str(row.attributes.get("id")): row for row in self.rows}
        return {int(name.partition("-")[2]): row for name, row in found.items() if name.startswith(f"l{file}-")}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profile]:
    """Mutual recursion, with a helper of another file inlined."""
    folder = tmp_path_factory.mktemp("lines")
    for name, text in (("lines_helper", HELPER), ("lines_functions", FUNCTIONS)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        load(folder / f"{name}.py")
    n = np.arange(7, dtype=np.int32)
    profile: Profile = sys.modules["lines_functions"].even.profile(n)
    assert profile.result.value.tolist() == [sys.modules["lines_functions"].even.plain(k) for k in n]
    yield profile
    del sys.modules["lines_helper"], sys.modules["lines_functions"]


@pytest.fixture
def text(profile: Profile, tmp_path: Path) -> str:
    profile.html(tmp_path / "profile.html")
    return (tmp_path / "profile.html").read_text(encoding="utf-8")


def test_every_line_stands_there_once(text: str) -> None:
    page = Page(text)
    assert max(Counter(page.ids).values()) == 1
    for file, (source, shown) in enumerate([(FUNCTIONS, [*range(5, 10), *range(15, 21)]), (HELPER, [*range(4, 8)])]):
        rows = page.lines(file)
        assert sorted(rows) == shown
        for number, row in rows.items():
            assert row.cells[0] == (None, str(number))
            assert row.cells[-1] == ("code", source.splitlines()[number - 1])
            assert len(row.cells) == 6
    assert text.count("lines_functions.py</h3>") == text.count("lines_helper.py</h3>") == 1
    assert "belongs to neither" not in text


def test_every_block_stands_there_once(profile: Profile, text: str) -> None:
    rows = [row for row in Page(text).rows if "data-block" in row.attributes]
    blocks = [block for block in profile.blocks if block.plan.text]  # in the others lanes only fail
    assert len(rows) == len(blocks)
    for k, (row, block) in enumerate(zip(rows, blocks, strict=True)):
        assert row.attributes["data-block"] == str(k)
        assert row.cells[0][1] == block.label + block.plan.function
        numbers = [cell for kind, cell in row.cells if kind == "number"]
        assert numbers[1] == str(block.visits)
        assert numbers[0] == f"{100 * block.work:.0f} %" and numbers[3] == f"{100 * block.utilisation:.0f} %"


def test_links_stay_on_the_page(text: str) -> None:
    page = Page(text)
    assert page.links and {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest", text)


def test_what_users_write_is_no_markup(text: str) -> None:
    page = Page(text)
    assert page.seen["script"] == 2 and not any("alert" in script for script in page.scripts)
    assert "<!--" not in text.partition("<body>")[2]


def test_the_counts_of_every_stretch_are_in_it(profile: Profile, text: str) -> None:
    data: dict[str, Any] = json.loads(Page(text).scripts[0])
    assert np.sum(data["visits"], axis=1).tolist() == [block.visits for block in profile.blocks]
    assert np.sum(data["offered"], axis=1).tolist() == [block.offered for block in profile.blocks]
    assert sum(data["trips"]) == profile.trips
    lines = {str(row.attributes["id"]) for row in Page(text).rows if "data-line" in row.attributes}
    assert set(data["held"]) == lines


def test_lines_share_the_work_of_the_blocks(profile: Profile) -> None:
    for spots in profile.source.spots:
        assert sum(spot.share for spot in spots) == pytest.approx(1.0)
    found = {(Path(spot.file).name, spot.line) for spots in profile.source.spots for spot in spots}
    assert {("lines_functions.py", 7), ("lines_functions.py", 20), ("lines_helper.py", 7)} <= found


def test_a_page_of_no_lanes_and_a_lambda(tmp_path: Path) -> None:
    twice = pcbatch.batch(lambda n: n + n)
    profile = twice.profile(np.zeros((0,), np.int32))
    profile.html(tmp_path / "empty.html")
    page = Page((tmp_path / "empty.html").read_text(encoding="utf-8"))
    (line,) = [row for row in page.rows if "data-line" in row.attributes]
    assert "    twice = pcbatch.batch(lambda n: n + n)" in {row.cells[-1][1] for row in page.rows}
    assert line.cells[-1][1].strip() == "twice = pcbatch.batch(lambda n: n + n)"


def test_files_of_one_name_are_told_apart() -> None:
    assert _short(["/home/me/a/model.py", "/home/me/b/model.py", "/home/me/b/tree.py"]) == [
        "a/model.py",
        "b/model.py",
        "tree.py",
    ]
    assert _short(["C:\\me\\model.py", "model.py"]) == ["me/model.py", "model.py"]
