"""The documentation as a site: `make docs`. Every code cell is executed, and one that fails fails the build."""

from __future__ import annotations

import os
import re
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the same pages wherever they are built

from docutils import nodes
from sphinx.application import Sphinx

import pcbatch
from tools import document_pages, error_pages

HERE = Path(__file__).parent
BUILD = HERE.parent / "build"
os.environ["PYTHONPATH"] = str(HERE.parent)  # cells import the examples
os.environ["IPYTHONDIR"] = str(BUILD / "ipython")

project, author, release = "pcbatch", "The pcbatch authors", pcbatch.__version__
project_copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["conf.py", "errors.md", "files.md", "developers/design/_architecture.md"]
html_theme = "furo"
html_title = "pcbatch"
nitpicky = True
# The types of our own modules, and of other projects, have no pages here.
nitpick_ignore_regex = [("py:.*", r"(?!pcbatch\.[A-Z]\w*$).*")]

myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline", "colon_fence"]
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
# While you write, `DOCS_CACHE=1 make docs` executes only what has changed in the pages.
nb_execution_mode = "cache" if os.environ.get("DOCS_CACHE") else "force"
nb_execution_cache_path = str(BUILD / "docs-cells")
nb_execution_show_tb = True  # and a failure is a warning, which is an error: all of them are seen
nb_execution_timeout = 900
nb_output_stderr = "remove"
nb_merge_streams = True
nb_render_error_lexer = "text"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = True

EXPECTED = re.compile(r"^(print\(.*\))  # .*$", re.MULTILINE)
CELL = re.compile(r"\S*ipykernel_\d+/\d+\.py")
TESTED = re.compile(r"^\| what works \| how \| test.*\n(?:\|.*\n)*", re.MULTILINE)
LAST_CELL = re.compile(r"\|[^|\n]*\|$", re.MULTILINE)


def without_glossary(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave the glossary out of the index where there is none."""
    if docname == "index" and not (HERE / "glossary.md").exists():
        source[0] = source[0].replace("glossary\n", "")


def as_rst(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Write the code in a docstring as reStructuredText has it; ours are in Markdown."""
    text = re.sub(r"`([^`]+)`(\w?)", lambda m: f"``{m[1]}``" + (f"\\ {m[2]}" if m[2] else ""), "\n".join(lines))
    lines[:] = text.replace("*args, **kwargs:", r"\*args, \*\*kwargs:").split("\n")


def without_what_tests_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave out the comments that say what a `print` prints, because the output stands below it, and the names of tests
    in tables. The suite reads both."""
    if docname.startswith("users/"):
        text = EXPECTED.sub(r"\1", source[0])
        if hasattr(error_pages, "linked"):
            text = error_pages.linked(text)
        source[0] = TESTED.sub(lambda table: LAST_CELL.sub("|", table[0]), text)


def name_cells(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give the temporary files of cells, as messages show them, a plain name."""
    for block in doctree.findall(nodes.literal_block):
        if "ipykernel_" in block.astext():
            block.children = [nodes.Text(CELL.sub("example.py", block.astext()))]
            block.rawsource = block.astext()


def write_error_pages(app: Sphinx) -> None:
    """Write users/errors.md, which is not committed."""
    folder = HERE / "users"
    if hasattr(error_pages, "write"):
        error_pages.write(folder)
    else:
        (folder / "errors.md").write_text(error_pages.document(), encoding="utf-8")


def write_pages_beside_code(app: Sphinx) -> None:
    """Write developers/design, which is not committed: the pages of the package's folders."""
    document_pages.write()


def configure_cells(app: Sphinx) -> None:
    """Let an exception in a cell show its message alone."""
    profile = BUILD / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_config.py").write_text('get_config().InteractiveShell.xmode = "Minimal"\n', encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Connect what is done before pages are read."""
    app.connect("builder-inited", write_error_pages)
    app.connect("builder-inited", write_pages_beside_code)
    app.connect("builder-inited", configure_cells)
    app.connect("source-read", without_what_tests_read)
    app.connect("source-read", without_glossary)
    app.connect("doctree-resolved", name_cells)
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon
