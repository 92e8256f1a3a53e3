"""Every Python block of README.md and of four documents runs, prints what it says and is refused where it says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import pcbatch

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
REFUSED = re.compile(r"  # (PCB\d{3}(?: PCB\d{3})*)$")


def blocks(name):
    """The Python blocks of a document, each with the line where it starts."""
    text = (ROOT / name).read_text("utf-8")
    return [(text.count("\n", 0, found.start()) + 2, found.group(1)) for found in BLOCK.finditer(text)]


PRELUDE = blocks("docs/language.md")[0][1]
CASES = [
    pytest.param(PRELUDE + block, id=f"{name}:{line}")
    for name in ("README.md", "docs/language.md")
    for line, block in blocks(name)
]
# The examples of these pages go on from one another.
for page in ("docs/jax.md", "docs/map.md", "docs/runs.md", "docs/schedule.md"):
    CASES.append(pytest.param("".join(block for _, block in blocks(page)), id=page))


@pytest.mark.promotion("standard")
@pytest.mark.parametrize("block", CASES)
def test_block(block, tmp_path, capsys):
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
