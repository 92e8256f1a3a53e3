"""The documentation: the toy from scratch runs and refuses what it does not know; every page is in the index."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

import pcbatch
from tools.document_pages import ARCHITECTURE, PAGES, beside_code, document

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def toy():
    return runpy.run_path(str(DOCS / "developers" / "from_scratch.py"))


def both(a, b):
    return a and b


def deep(n):
    if n == 0:
        return 0
    return 1 + deep(n - 1)


def falls_off(n):
    if n > 0:
        return n


def test_the_toy_gives_what_the_plain_function_gives(toy):
    values, _ = toy["batch"](deep)([0, 5, 31])
    assert values.tolist() == [deep(0), deep(5), deep(31)]


def test_the_toy_refuses_rather_than_guesses(toy):
    with pytest.raises(SyntaxError, match="both, line 2: the toy knows no BoolOp"):
        toy["batch"](both)
    with pytest.raises(SyntaxError, match="a path ends without `return`"):
        toy["batch"](falls_off)
    with pytest.raises(RecursionError, match="more than 32 calls"):
        toy["batch"](deep)([3, 33])


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text("utf-8")
    listed = set(re.findall(r"^((?:users|developers)/\w+)$", index, re.MULTILINE))
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("*/*.*") if path.stem != "errors"}
    assert listed - {"users/errors"} == pages


def test_the_api_has_every_public_name_and_the_options_every_option():
    api = (DOCS / "users" / "api.md").read_text("utf-8")
    names = set(re.findall(r"^\.\. auto\w+:: (\w+)(?:\(.*\))?$", api, re.MULTILINE))
    assert names == set(pcbatch.__all__)
    reports = set(re.findall(r"^\.\. auto\w+:: pcbatch\.report\.(\w+)$", api, re.MULTILINE))
    assert reports == {name for name, value in vars(pcbatch.report).items() if isinstance(value, type)}
    options = (DOCS / "users" / "options.md").read_text("utf-8")
    chosen = pcbatch.batch(lambda x: x).options
    names = [*type(chosen).__dataclass_fields__, *type(chosen.plan).__dataclass_fields__]
    assert [name for name in names if f"| `{name}` |" not in options] == []


def test_the_architecture_leads_to_every_page_beside_the_code():
    text = ARCHITECTURE.read_text("utf-8")
    assert [page for page in beside_code() if f"]({page.relative_to(DOCS.parent).as_posix()})" not in text] == []


def test_the_architecture_is_one_page():
    assert ARCHITECTURE.read_text("utf-8").count("\n") <= 150
    assert [page for page in beside_code() if page.stat().st_size > 8192] == []


def test_pages_beside_the_code_have_links_within_the_documentation():
    folder = PAGES / "design"
    for page in beside_code():
        for target in re.findall(r"\]\(([\w./-]+)", document(page, folder)):
            path = (folder / target).resolve()
            assert path.parent in (folder, PAGES, DOCS / "users", DOCS), (page, target)
            assert path.exists() or path.parent == folder or path.name == "errors.md", (page, target)


def test_links_lead_to_files():
    link = re.compile(r"\]\((?!https?:)([\w./-]+\.(?:md|py))(?:#[\w-]*)?\)")
    pages = [*DOCS.parent.glob("*.md"), *DOCS.glob("users/*.md"), *DOCS.glob("developers/*.*"), DOCS / "index.md"]
    found = [(page, target) for page in [*pages, *beside_code()] for target in link.findall(page.read_text("utf-8"))]
    assert len(found) > 40
    lost = [(page.name, target) for page, target in found if not (page.parent / target).exists()]
    assert [pair for pair in lost if Path(pair[1]).name != "errors.md"] == []  # the build writes it
