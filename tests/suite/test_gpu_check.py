"""`tools/gpu_check`: its parsers on recorded dumps, its counts, laws and record. Nothing is compiled for a GPU here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from benchmarks.gpu.programs import NAMES
from tools.gpu_check import __main__ as command
from tools.gpu_check import ptxas
from tools.gpu_check.cases import Case, cases, named
from tools.gpu_check.launches import Count, Launches, launches
from tools.gpu_check.laws import broken
from tools.gpu_check.measure import Measured, Refused, read
from tools.gpu_check.record import Record, better, entry, worse
from tools.gpu_check.thunks import BODY, CONDITION, DumpError, Section, Thunk, parse, walk

DUMPS = Path(__file__).with_name("gpu_dumps")
KERNEL = """
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'machine' for 'sm_90a'
ptxas info    : Function properties for machine
    8 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers
"""


def dump(name: str) -> str:
    """The text of a recorded dump."""
    return (DUMPS / f"{name}.txt").read_text(encoding="utf-8")


def counted(name: str) -> Launches:
    """The counts of a recorded dump."""
    return launches(parse(dump(name)))


def measured(name: str, *kernels: ptxas.Kernel) -> Measured:
    """A recorded dump as the outcome of a case."""
    return Measured(counted(name), kernels)


class TestThunks:
    def test_a_sequence(self):
        assert parse(dump("short_loop_graphs")) == (
            Thunk("kCopy", "kCopy"),
            Thunk(
                "kWhile",
                "",
                (
                    Section(CONDITION, (Thunk("kCustomKernel", "input_reduce_fusion"),)),
                    Section(BODY, (Thunk("kCustomKernel", "loop_select_fusion"),)),
                ),
            ),
        )

    @pytest.mark.parametrize("file", sorted(DUMPS.glob("*.txt")), ids=lambda file: file.stem)
    def test_no_thunk_is_lost(self, file):
        text = file.read_text(encoding="utf-8")
        kinds = [thunk.kind for thunk in walk(parse(text))]
        assert len(kinds) == text.count(": k")
        assert set(kinds) <= set(text.split())

    @pytest.mark.parametrize("file", sorted(DUMPS.glob("*.txt")), ids=lambda file: file.stem)
    def test_loops_and_conditionals_have_their_sections(self, file):
        for thunk in walk(parse(file.read_text(encoding="utf-8"))):
            labels = [section.label for section in thunk.sections]
            match thunk.kind:
                case "kWhile":
                    assert labels == [CONDITION, BODY]
                    assert thunk.section(BODY)
                case "kConditional":
                    assert labels == [f"branch_{k}" for k in range(len(labels))]
                    assert len(labels) > 1
                case "kCommandBuffer" | "kSequential":
                    assert labels == [""]
                case _:
                    assert not labels

    def test_an_empty_condition_and_a_body_on_one_line(self):
        (loop,) = [thunk for thunk in parse(dump("fib_guard")) if thunk.kind == "kWhile"]
        guards = [thunk for thunk in loop.section(BODY) if thunk.kind == "kWhile"]
        assert [len(guard.section(CONDITION)) for guard in guards] == [0, 0, 0, 0]
        assert all(guard.section(BODY) for guard in guards)

    def test_the_first_thunk_behind_a_sequential_on_its_line(self):
        groups = [thunk for thunk in walk(parse(dump("solve_port_graphs"))) if thunk.kind == "kSequential"]
        assert [[inner.kind for inner in group.inside] for group in groups] == [["kCopy", "kTriangularSolve"]] * 2

    def test_branches_of_a_conditional(self):
        (graph,) = parse(dump("ode_port_graphs"))
        (loop,) = [thunk for thunk in graph.inside if thunk.kind == "kWhile"]
        (switch,) = [thunk for thunk in loop.section(BODY) if thunk.kind == "kConditional"]
        assert len(switch.sections) == 3
        assert all(section.thunks for section in switch.sections)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("some words", "no thunk"),
            ("body:", "belongs to no `kWhile`"),
            ("000: kCopy [source] kCopy\ncondition:", "a condition behind a `kCopy`"),
            ("000: kWhile [source]\n    001: kCopy [source] kCopy", "before any label"),
        ],
    )
    def test_another_form_is_refused(self, text, message):
        with pytest.raises(DumpError, match=message):
            parse(text)


class TestLaunches:
    def test_port_waits_once_per_trip(self):
        found = counted("fib_port")
        assert found.run == Count(waits=2, launches=7, kernels=17, copies=11)
        assert found.trip == Count(waits=1, launches=3, kernels=12, copies=8)
        assert found.obstacles == ()

    def test_guard_waits_for_each_block(self):
        found = counted("fib_guard")
        assert found.trip is not None
        assert found.trip.waits == 1 + 2 * 5  # a block of the five has a loop of its own

    @pytest.mark.parametrize("name", ["ode_port_graphs", "ode_guard_graphs"])
    def test_nothing_waits_in_a_command_buffer(self, name):
        found = counted(name)
        assert (found.run.waits, found.run.launches) == (0, 1)
        assert found.trip is not None
        assert (found.trip.waits, found.trip.launches) == (0, 0)
        assert found.trip.kernels > 1

    def test_what_keeps_a_loop_out_is_named(self):
        found = counted("solve_port_graphs")
        assert found.obstacles == ("kCustomCall", "kTriangularSolve")
        assert found.trip is not None
        assert found.trip.waits == 2  # the loop and its conditional

    def test_a_loop_among_few_thunks_stays_with_the_host(self):
        found = counted("short_loop_graphs")
        assert found.run == Count(waits=2, launches=4, kernels=3, copies=1)
        assert found.obstacles == ()

    def test_a_kernel_is_launched_once(self):
        found = counted("ode_kernel")
        assert found.trip is None
        assert found.custom.count("machine") == 1
        assert found.run.waits == 0

    def test_the_longest_branch_counts(self):
        branches = (Section("branch_0", (Thunk("kCopy", ""),) * 3), Section("branch_1", (Thunk("kKernel", ""),)))
        found = launches((Thunk("kConditional", "", branches),))
        assert found.run == Count(waits=1, launches=3, kernels=1, copies=3)

    def test_the_host_waits_for_callbacks(self):
        assert launches((Thunk("kHostExecuteStart", ""), Thunk("kHostExecuteDone", ""))).run == Count(waits=1)

    def test_an_unknown_kind_is_refused(self):
        with pytest.raises(DumpError, match="`kTelepathy` is not known"):
            launches((Thunk("kTelepathy", ""),))


class TestPtxas:
    def test_kernels(self):
        assert ptxas.parse(KERNEL) == (ptxas.Kernel("machine", 40, 8), ptxas.Kernel("other", 255, 0))

    def test_missing_numbers(self):
        with pytest.raises(ValueError, match="registers of `machine`"):
            ptxas.parse(KERNEL.partition("Used")[0])


class TestReading:
    def test_the_sequence_after_passes_counts(self, tmp_path):
        (tmp_path / "module_1.jit_f.thunk_sequence.txt").write_text(dump("fib_port"))
        (tmp_path / "module_1.jit_f.thunk_sequence_after_thunk_passes.txt").write_text(dump("ode_port_graphs"))
        assert read(tmp_path) == measured("ode_port_graphs")

    def test_passes_may_change_nothing(self, tmp_path):
        (tmp_path / "module_1.jit_f.thunk_sequence.txt").write_text(dump("short_loop_graphs"))
        assert read(tmp_path) == measured("short_loop_graphs")

    def test_a_kernel_without_its_code_is_no_kernel_without_spills(self, tmp_path):
        (tmp_path / "module_1.jit_f.thunk_sequence.txt").write_text(dump("ode_kernel"))
        (tmp_path / "module_1.jit_f.1.ptx").write_text(".visible .entry other(")
        with pytest.raises(ValueError, match="no PTX of machine"):
            read(tmp_path)

    def test_there_is_one_program(self, tmp_path):
        with pytest.raises(DumpError, match="no thunk sequence"):
            read(tmp_path)
        for k in range(2):
            (tmp_path / f"module_{k}.jit_f.thunk_sequence.txt").write_text(dump("fib_port"))
        with pytest.raises(DumpError, match="2 programs"):
            read(tmp_path)


class TestLaws:
    def test_no_waits_in_graphs(self):
        case = Case("ode", "port")
        assert list(broken(case, measured("ode_port_graphs"))) == []
        (fault,) = broken(case, measured("solve_port_graphs"))
        assert "kTriangularSolve" in fault
        (fault,) = broken(case, measured("short_loop_graphs"))
        assert "too few thunks" in fault
        assert list(broken(replace(case, graphs=False), measured("fib_port"))) == []

    def test_one_kernel_without_spills(self):
        case = Case("ode", "kernel")
        assert list(broken(case, measured("ode_kernel", ptxas.Kernel("machine", 40, 0)))) == []
        (fault,) = broken(case, measured("ode_kernel", ptxas.Kernel("machine", 255, 16)))
        assert "spills 16 bytes" in fault
        assert list(broken(Case("nuts-100", "kernel"), measured("ode_kernel", ptxas.Kernel("machine", 255, 16)))) == []
        (fault,) = broken(case, measured("ode_port_graphs"))
        assert "0 kernels" in fault

    def test_programs_compile(self):
        assert list(broken(Case("ode", "kernel"), Refused("no memory"))) == ["does not compile: no memory"]
        assert list(broken(Case("trees", "port"), Refused("no memory"))) == ["does not compile: no memory"]
        assert list(broken(Case("trees", "kernel"), Refused("no memory"))) == []


class TestRecord:
    old = {"waits": 0, "kernels": 7}

    def test_growth(self):
        assert list(worse(self.old, {"waits": 2, "kernels": 6})) == ["waits grew from 0 to 2"]
        assert list(worse(self.old, {"waits": 0, "kernels": 7, "spilled": 4})) == ["spilled grew from 0 to 4"]
        assert list(worse(self.old, self.old)) == []
        assert list(worse(None, self.old)) == ["not recorded; record it with --write"]

    def test_gain(self):
        assert list(better(self.old, {"waits": 2, "kernels": 6})) == ["kernels shrank from 7 to 6"]
        assert list(better(self.old, self.old)) == []

    def test_refusals(self):
        refused = entry(Refused("no memory"))
        assert list(worse(self.old, refused)) == ["does not compile any more: no memory"]
        assert list(worse(refused, refused)) == list(worse(refused, self.old)) == []
        assert list(better(refused, self.old)) == ["compiles now"]
        assert list(better(self.old, refused)) == []

    def test_a_file(self, tmp_path):
        path = tmp_path / "recorded.json"
        assert Record.load(path) == Record("", {})
        record = Record("", {"old": self.old}).with_cases("1.0", {"b": self.old, "a": {"refused": "why"}})
        record.save(path)
        assert Record.load(path) == record
        assert list(record.with_cases("1.0", {"c": self.old}).cases) == ["b", "a", "c"]
        assert list(record.with_cases("1.1", {"c": self.old}).cases) == ["c"]

    def test_every_case_is_recorded(self):
        assert set(Record.load().cases) == set(map(str, cases()))

    def test_laws_hold_of_what_is_recorded(self):
        for name, numbers in Record.load().cases.items():
            assert "graphs" not in name or numbers.get("waits", 0) == 0, name


class TestCases:
    def test_names(self):
        assert len({str(case) for case in cases()}) == len(cases())
        assert {case.program for case in cases()} <= set(NAMES)
        assert named("fib port auto default") == Case("fib", "port", graphs=False)


class TestCommand:
    def run(self, monkeypatch, path, outcome, *arguments):
        monkeypatch.setattr(command, "measure", lambda chosen, jobs, keep: [(case, outcome) for case in chosen])
        return command.main(["--only", "ode port auto graphs", "--record", str(path), *arguments])

    def test_what_grew_is_named(self, monkeypatch, tmp_path, capsys):
        path = tmp_path / "recorded.json"
        outcome = measured("ode_port_graphs")
        assert self.run(monkeypatch, path, outcome, "--write") == 0
        assert self.run(monkeypatch, path, outcome) == 0
        content = json.loads(path.read_text())
        content["cases"]["ode port auto graphs"]["kernels"] -= 1
        content["cases"]["ode port auto graphs"]["copies"] += 1
        path.write_text(json.dumps(content))
        capsys.readouterr()
        assert self.run(monkeypatch, path, outcome) == 1
        said = capsys.readouterr().out
        assert "WORSE   ode port auto graphs: kernels grew from" in said
        assert "better  ode port auto graphs: copies shrank from" in said

    def test_another_release_of_jax_is_held_to_the_laws(self, monkeypatch, tmp_path, capsys):
        path = tmp_path / "recorded.json"
        Record("0.0.1", {"ode port auto graphs": {"waits": 0, "kernels": 0}}).save(path)
        assert self.run(monkeypatch, path, measured("ode_port_graphs")) == 0
        assert f"jax 0.0.1, and this is {jax.__version__}" in capsys.readouterr().out
        assert self.run(monkeypatch, path, measured("solve_port_graphs")) == 1

    def test_a_broken_law_is_recorded_and_fails(self, monkeypatch, tmp_path):
        assert self.run(monkeypatch, tmp_path / "recorded.json", measured("solve_port_graphs"), "--write") == 1

    def test_no_such_case(self):
        with pytest.raises(SystemExit):
            command.main(["--only", "no such case"])
