"""Every code has a page, and the programs of every page do what it says.

Where `errors/CODE.err` is what the wrong program of a page gives, `test_golden_errors.py` runs it.
"""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import pcbatch
from pcbatch.diagnostics.error_pages import GROUPS, Page, find, near, pages, parsed
from tools.error_pages import linked, write

PACKAGE = Path(pcbatch.__file__).parent
PAGES = pages()
RENDERED = {path.stem for path in (Path(__file__).parents[1] / "errors").glob("PCB???.err")}

pytestmark = pytest.mark.promotion("standard")


@pytest.fixture(autouse=True)
def as_users_have_it() -> Iterator[None]:
    """The programs are those of users, who have not asked for the strictness of this suite."""
    jax.config.update("jax_numpy_rank_promotion", "allow")  # a context would hold in this thread alone
    yield
    jax.config.update("jax_numpy_rank_promotion", "raise")


def emitted() -> set[str]:
    """Codes that stand as strings in the source, or are made of their number."""
    files = [path for path in PACKAGE.rglob("*.py") if "codes" not in path.relative_to(PACKAGE).parts]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return set(re.findall(r'"(PCB\d{3})"', text))


def run(program: str, folder: Path) -> None:
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    runpy.run_path(str(file))


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert emitted() == set(PAGES)


@pytest.mark.parametrize("code", [code for code in PAGES if code not in RENDERED])
def test_the_bad_program_gives_the_code(code: str, tmp_path: Path) -> None:
    page = PAGES[code]
    if sys.version_info < page.since:
        pytest.skip(f"syntax of Python {page.since}")
    if page.head == "This gives a warning":
        with pytest.warns(DeprecationWarning, match=code) as warned:
            run(page.bad, tmp_path)
        assert len(warned) == 1 and "  = help: write `plan=pcbatch.Plan(schedule=" in str(warned[0].message)
        return
    with pytest.raises(pcbatch.PcbatchError) as info:
        run(page.bad, tmp_path)
    assert {found.code for found in info.value.diagnostics} == {page.code}, str(info.value)
    assert all(found.helps for found in info.value.diagnostics), str(info.value)


@pytest.mark.share(12)
@pytest.mark.long
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_good_program_runs(page: Page, tmp_path: Path) -> None:
    run(page.good, tmp_path)


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_pages_are_laid_out(page: Page) -> None:
    assert page.code[3] in GROUPS
    assert not page.title.endswith(".") and page.title[:1] in "`abcdefghijklmnopqrstuvwxyz"
    assert all(len(line) <= 120 for line in page.text.splitlines())
    assert page.text == page.text.strip() and page.text.endswith((".", ".)"))
    assert page.show().startswith(f"{page.code}: ")


def test_pages_are_found() -> None:
    assert find("pcb301") is find("301") is find(" PCB301 ") is PAGES["PCB301"]
    assert find("PCB999") is None and find("") is None
    assert find("PCB3O1") is PAGES["PCB301"] and near("PCB391") and "PCB105" in near("yield")
    assert near("") == ()


def test_files_are_named_by_their_codes() -> None:
    for code in PAGES:
        assert parsed((PACKAGE / "diagnostics" / "pages" / f"{code}.md").read_text(encoding="utf-8")) == PAGES[code]


@pytest.mark.parametrize("text", ["", "# PCB301: a title\n\nNo programs.\n", "a line before\n# PCB301: a title\n"])
def test_what_is_no_page_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no page about a code"):
        parsed(text)


def test_the_document_holds_every_page_and_links_reach_it(tmp_path: Path) -> None:
    write(tmp_path)
    text = (tmp_path / "errors.md").read_text(encoding="utf-8")
    for page in PAGES.values():
        assert f"### {page.code}: {page.title}\n\n{page.text}\n" in text
        assert f"```python\n{page.bad}\n```" in text and f"```python\n{page.good}\n```" in text
    link = "[PCB105](errors.md#pcb105-yield-is-not-supported)"
    assert linked("[PCB105](../pcbatch/codes/pages/PCB105.md)") == link
    assert link.replace("errors.md", "") in text
    assert linked("[PCB105](elsewhere.md)") == "[PCB105](elsewhere.md)"
