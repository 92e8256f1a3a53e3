"""The benchmark of the papers: its rows, its table, its page; ways to compute one thing agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks import plots
from benchmarks.papers import __main__ as papers
from benchmarks.papers import cells, cocktailer, ed_batch, host_control, nuts, page, relatedness, tfp
from benchmarks.papers.figure import Figure, Measured, Paper, Row, attempted, number, table
from examples.networks import check
from examples.networks.run import Settings
from pcbatch.lowering.left_out import without

pytestmark = [pytest.mark.share(3), pytest.mark.promotion("standard")]

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(autouse=True)
def ranks_may_differ() -> Iterator[None]:
    """As users have it."""
    with jax.numpy_rank_promotion("allow"):
        yield


def figure(measure: Any, name: str = "one") -> Figure:
    return Figure(name, "Table 1", "a title", "It reports.", "As it is.", "ratio", measure)


def test_a_table_has_all_columns_and_says_what_is_missing() -> None:
    rows = [
        Row("a", "1.5", 1234.5, {"ms": 0.01234, "n": 7}),
        Row("b", "", None, {"ms": None, "late": 2.0}, "not installed"),
        Row("c", "", 3, why="half of it is missing"),
    ]
    assert table("ratio", rows).splitlines() == [
        "| ratio | paper | here | ms | n | late |",
        "|---|---|---|---|---|---|",
        "| a | 1.5 | 1,234 | 0.0123 | 7 | - |",
        "| b | - | not measured: not installed | - | - | 2 |",
        "| c | - | 3 | - | - | - |",
        "",
        "c: half of it is missing.",
    ]
    assert [number(x) for x in (None, 12345, 0.5, 2e6)] == ["-", "12,345", "0.5", "2,000,000"]


def test_a_row_that_fails_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> Row:
        raise ValueError("\n  a | b\nc")

    assert attempted("x", lambda: Row("x", "", 2)).here == 2
    assert attempted("x", fails) == Row("x", why="ValueError: a / b")
    assert capsys.readouterr().out == "  x: 2\n  x: -\n"


def test_what_is_measured_is_stored_and_makes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: bool) -> Measured:
        raise ValueError("no such thing\nin two lines")

    batches = figure(lambda _: ed_batch.batches(["TreeLSTM"], 2, ["base"], 2, 2), "batches")
    figures = [batches, figure(fails, "fails"), figure(fails, "never")]
    monkeypatch.setattr(papers, "FIGURES", {each.name: each for each in figures})
    monkeypatch.setattr(papers, "PAPERS", (Paper("A Paper", "Somebody, 2023", figures),))
    file, to = tmp_path / "papers.json", tmp_path / "papers.md"
    file.write_text(json.dumps({"fails": {"error": "an older one"}}))
    assert papers.main(["--only", "batches", "--quick", "--json", str(file)]) == 0
    assert papers.main(["--only", "fails", "--json", str(file)]) == 1
    assert papers.main(["--page", "--json", str(file), "--to", str(to)]) == 0
    text = to.read_text("utf-8")
    assert "## A Paper" in text and "| TreeLSTM | 1 | " in text and "Quick run of" in text
    assert "Not measured: `ValueError: no such thing`." in text and text.count("Not measured.") == 1
    assert "![batches by policy](papers/papers-batches.png)" in text
    assert (tmp_path / "papers" / "papers-batches.png").exists()


def test_figures_have_names_of_their_own_and_the_page_has_them_all() -> None:
    everything = [each for paper in papers.PAPERS for each in paper.figures]
    assert len(papers.FIGURES) == len(everything)
    text = (DOCS / "users" / "papers.md").read_text("utf-8")
    assert [each.name for each in everything if f"### {each.number}: {each.title}" not in text] == []
    pictures = set((DOCS / "users" / "papers").glob("*.png"))
    shown = {DOCS / "users" / part.partition(")")[0] for part in text.split("](")[1:] if ".png)" in part}
    assert pictures == shown


def test_every_curve_has_its_plot() -> None:
    names = {nuts.THROUGHPUT, nuts.UTILISATION, ed_batch.BATCHES, cocktailer.SPEED, cocktailer.RATIO}
    assert names <= plots.PLOTS.keys()
    assert page.anchor(nuts.THROUGHPUT) == "papers-nuts-throughput.png"


def test_without_its_environment_the_authors_sampler_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfp, "INTERPRETER", Path("nowhere"))
    rates, why = tfp.rates(None, [1], 10)
    assert rates == {} and why.startswith("not installed")


@pytest.mark.parametrize("name", ["seq2seq", "blockdrop", "tree_rae"])
@pytest.mark.long
def test_networks_say_the_same_by_host_control_flow_and_as_a_traced_graph(name: str) -> None:
    made = cocktailer.task(name, Settings(8, 1, 4))
    said = [host_control.NETWORKS[name](made.weights, made.examples[0].x)]
    expected = cocktailer.flat(made.predict())
    check.compare(cocktailer.said(said), expected, name)
    x = made.examples[0].x
    graph = host_control.traced(name, made.weights, x)
    check.compare(
        cocktailer.said([graph(made.weights, x if isinstance(x, np.ndarray) else None)])[: len(expected)],
        expected,
        name,
    )


@pytest.mark.long
def test_pairs_are_graded_the_same_by_the_compiler_and_by_asking() -> None:
    pytest.importorskip("greenlet")
    w, (pairs, _) = relatedness.weights(8), relatedness.pairs(3, 4.0)
    assert max(relatedness.widest(tree) for pair in pairs for tree in pair) <= relatedness.CHILDREN
    expected = [np.asarray(relatedness.predict.plain(w, pair)) for pair in pairs]
    check.compare(relatedness.asked(w, pairs), expected, "asked")
    check.compare(relatedness.node_by_node(w, pairs), expected, "node by node")


@pytest.mark.long
def test_cells_compute_the_same_without_fused_products() -> None:
    args = cells.arguments("LSTMCell", 8, 2, 3)
    with without("fuse_products"):
        apart = cells.program("LSTMCell")(*args)
    check.compare(apart, cells.program("LSTMCell")(*args), "LSTMCell")
