"""The deliberate defects stay in step with the code; `python -m tools.mutate` runs them."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tools.mutants import ROOT, load
from tools.mutate import judge

AREAS = load()
MUTANTS = [mutant for area in AREAS.values() for mutant in area]


@pytest.mark.parametrize("area", AREAS)
def test_they_still_apply(area: str) -> None:
    """The rule that a mutant breaks is where it was, once, and the broken module is another program."""
    for mutant in AREAS[area]:
        changed = mutant.apply(mutant.source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(mutant.source)), mutant.name


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(m.name for m in MUTANTS).items() if count > 1] == []


def test_the_tests_exist() -> None:
    files = {test.partition("::")[0] for m in MUTANTS for test in m.tests}
    assert [file for file in files if not (ROOT / file).exists()] == []
    for file, test in {tuple(t.split("[")[0].split("::")[:2]) for m in MUTANTS for t in m.tests if "::" in t}:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert f"def {test}(" in text or f"class {test}:" in text, f"{file}::{test}"


# Modules without a mutant of their own: words and trees, which the golden errors hold, and files that were split off
# others or came late. Do not add to them.
WITHOUT = {
    "frontend.build.iteration.generators",
    "frontend.build.iteration.itertools_loops",
    "frontend.build.library_calls",
    "frontend.build.outside_changes",
    "frontend.source.helpers",
    "frontend.source.rewrites.mapped_calls",
    "frontend.source.rewrites.nested",
    "frontend.source.places",
    "frontend.source.rewrites.spread",
    "frontend.source.streams",
    "frontend.source.tree",
    "frontend.subset.check_statements",
    "frontend.subset.unused_results",
    "data.functions.array_items",
    "data.functions.exceptions",
    "data.functions.heaps",
    "frontend.support.helper_copies",
    "data.functions.mappings",
    "data.functions.math_functions.arguments",
    "data.functions.math_functions.complexes",
    "data.functions.math_functions.reals",
    "data.functions.math_functions.several_numbers",
    "data.functions.math_functions.table",
    "data.functions.number_checks",
    "data.functions.sequence_operators",
    "data.functions.sequence_builtins",
    "data.functions.texts",
    "frontend.support.tracer_operators",
    "lowering.cfg_passes.wrap_entry",
    "lowering.diagnose.fix_its",
    "lowering.diagnose.numpy_fix_its",
    "lowering.diagnose.resolve_names",
    "lowering.stack_passes.stored_into",
    "lowering.stack_passes.superblocks",
    "lowering.typing.objects",
    "lowering.typing.traced_aliases",
    "runtime.execute.call_values",
    "runtime.execute.chunk_results",
    "runtime.execute.program_cache",
    "runtime.execute.where_stopped",
    "runtime.vm.run_once",
}


@pytest.mark.parametrize("folder", ["frontend", "lowering", "runtime"])
def test_every_file_has_one(folder: str) -> None:
    modules = {mutant.module.removeprefix("pcbatch.") for mutant in MUTANTS}
    files = sorted((ROOT / "pcbatch" / folder).rglob("[!_]*.py"))
    names = [
        ".".join(f.relative_to(ROOT / "pcbatch").with_suffix("").parts) for f in files if "def " in f.read_text("utf-8")
    ]
    assert {name for name in names if name not in modules} == {name for name in WITHOUT if name.startswith(folder)}


@pytest.mark.parametrize(
    ("events", "status", "verdict"),
    [
        ([("applied", "m"), ("start", "tests/a.py::b")], 0, "SURVIVED"),
        ([("applied", "m"), ("start", "tests/a.py::b")], -1, "tests/a.py::b does not end"),
        ([("applied", "m"), ("failed", "tests/a.py::b")], 1, "tests/a.py::b"),
        ([("start", "tests/a.py::b")], 0, "BROKEN: the module was never imported"),
    ],
)
def test_verdicts(events: list[tuple[str, str]], status: int, verdict: str) -> None:
    assert judge(events, status, "") == verdict
