"""Python blocks of README.md and cells of the documents run, print what they say and are refused where they say.

`make docs` executes the cells too, and shows what they print; here it is compared with the comments behind them.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import pcbatch

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(?:python|\{code-cell\})\n(?::[^\n]*\n\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(
    r"^print\((\w+(?:\.\w+\(\))?)\)$", re.MULTILINE
)  # a table, of which only the build shows how it looks
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
REFUSED = re.compile(r"  # (PCB\d{3}(?: PCB\d{3})*)$", re.MULTILINE)


def blocks(name):
    """The Python blocks of a document, each with the line where it starts."""
    text = (ROOT / name).read_text("utf-8")
    return [
        (text.count("\n", 0, found.start(1)) + 1, SHOWN.sub(r"str(\1)", found[1])) for found in BLOCK.finditer(text)
    ]


USERS = "docs/users"
PRELUDE = blocks(f"{USERS}/language.md")[0][1]
CASES = [
    pytest.param(PRELUDE + block, id=f"{name}:{line}")
    for name in ("README.md", f"{USERS}/language.md")
    for line, block in blocks(name)
]
PAGES = ("schedule", "from_vmap", "jax", "map", "runs", "first_hour")


@pytest.mark.share(5)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("block", CASES)
def test_block(block, tmp_path, capsys):
    check(block, tmp_path, capsys)


@pytest.mark.share(6)
@pytest.mark.promotion("standard")
@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path, capsys):
    """The examples of these pages go on from one another."""
    check("".join(text for _, text in blocks(f"{USERS}/{page}.md") if not REFUSED.search(text)), tmp_path, capsys)


def check(block, tmp_path, capsys):
    file = tmp_path / "example.py"
    file.write_text(block, "utf-8")
    refused = [
        (code, number)
        for number, line in enumerate(block.splitlines(), 1)
        if (marked := REFUSED.search(line))
        for code in marked.group(1).split()
    ]
    if refused:
        with pytest.raises(pcbatch.CompileError) as error:
            runpy.run_path(str(file))
        assert [(found.code, found.primary.loc.line) for found in error.value.diagnostics] == refused
        return
    runpy.run_path(str(file))
    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("[lane ")]
    expected = PRINTED.findall(block)
    assert len(printed) == len(expected)
    for got, comment in zip(printed, expected, strict=True):
        assert comment == got or comment.startswith(f"{got}, ")  # README explains behind a comma


COLUMN = 90  # characters of code that the site shows without scrolling


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs" / "users").glob("*.md"))], ids=lambda p: p.stem
)
def test_code_fits_its_column(page: Path) -> None:
    """What a cell prints is shown below it, so that the comment which says so is left out."""
    inside, cell = False, False
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            cell = not inside and "{code-cell}" in line
            inside = not inside and (cell or line.lstrip().startswith("```python"))
        elif inside:
            shown = line.partition("  # ")[0] if cell and line.startswith("print(") else line
            assert len(shown) <= COLUMN, f"{page.name}:{number}: {len(shown)} characters"
