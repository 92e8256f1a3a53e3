"""The helps of faults in the use of the API, of runs, and of gradients, followed to the letter.

Each wrong program of `tests/errors` with a code PCB4xx or PCB9xx has a piece of text that its help replaces, or stands
in `GUIDANCE`, with the reason. The wrong program on the page of a code has a right one beside it (`test_pages.py`).
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

import pcbatch
from pcbatch.diagnostics.error_pages import pages

FOLDER = Path(__file__).parents[1] / "errors"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("PCB[49]*.py"))
PACKAGE = Path(pcbatch.__file__).parent

pytestmark = pytest.mark.promotion("standard")

# The program, what its help says, and what is written for that: the text that is replaced, and the new text.
FOLLOWED: dict[str, tuple[str, str, str]] = {
    "PCB401_memory": ('`max_memory="8GB"`', 'max_memory="much"', 'max_memory="8GB"'),
    "PCB401_modes": ("`modes=pcbatch.Dense()`", 'modes={"n + n": "dense"}', "modes=pcbatch.Dense()"),
    "PCB401_name": ("strategy", "stratagem", "strategy"),
    "PCB401_number": ("max_depth=64", "max_depth=0", "max_depth=64"),
    "PCB401_policy": ("`schedule=Mine()`", "schedule=Mine)", "schedule=Mine())"),
    "PCB401_policy_name": ("give it a `name`, a string", "class Mine:", 'class Mine:\n    name = "mine"'),
    "PCB401_width": ("`pcbatch.Few(32)`", "pcbatch.Few(0)", "pcbatch.Few(32)"),
    "PCB402_option": (
        "with_options(plan=pcbatch.Plan(schedule=",
        'f(N, N, schedule="sweep")',
        'f.with_options(plan=pcbatch.Plan(schedule="sweep"))(N, N)',
    ),
    "PCB402_unexpected": ("pass each parameter once", "f(N, N, c=N)", "f(N, N)"),
    "PCB403_dataclass": (
        "`jax.tree_util.register_dataclass`",
        "@dataclasses.dataclass\n",
        "@jax.tree_util.register_dataclass\n@dataclasses.dataclass\n",
    ),
    "PCB403_donated_constant": ("leave it out of `donate_argnames`", 'donate_argnames="n", ', ""),
    "PCB403_donated_name": ("the parameters are x", '("state",)', '("x",)'),
    "PCB403_name": ("the parameters are n", "def f(n)", "def f(n, k=1)"),
    "PCB404_kind": ("one entry per parameter", '"rows"', "(0,)"),
    "PCB404_leaf": ("the number of the axis", '{"a": "x"}', '{"a": 0}'),
    "PCB404_name": ("the parameters are n", '{"m": 0}', '{"n": 0}'),
    "PCB404_structure": ("one axis for all its leaves", "((0, None),)", "(0,)"),
    "PCB405_keys": ("of one type", "{1: X", '{"b": X'),
    "PCB405_leaf": ("`in_axes={'net': None}`", "@pcbatch.batch", "@pcbatch.batch(in_axes={'net': None})"),
    "PCB405_masked": ("`n.filled(0)`", "mask=[0, 1, 0])", "mask=[0, 1, 0]).filled(0)"),
    "PCB405_objects": ("the positions of the strings", 'np.array(["a", "b"])', "np.array([0, 1])"),
    "PCB406_axis": ("`in_axes={'n': None}`", "f(N)", "f.with_options(in_axes=0)(N)"),
    "PCB406_leaf": ("one value per lane", "[3]", "[N]"),
    "PCB406_list": ("`jnp.array(k)`", "[1, 2, 3])\n", "jnp.array([1, 2, 3]))\n"),
    "PCB409_builtin": ("wrap a callable object or a builtin in a function", "batch(len)", "batch(lambda x: len(x))"),
    "PCB409_method": (
        "above its `def` in the class",
        "    def f(self, n):\n        return n\n\n\npcbatch.batch(Model().f)",
        "    @pcbatch.batch\n    def f(self, n):\n        return n\n\n\nModel().f",
    ),
    "PCB409_partial": ("`static_argnames`", "functools.partial(f, 3)", 'f, static_argnames="n"'),
    "PCB414_both": ("leave one of them out", "devices=1, ", ""),
    "PCB414_count": ('`devices="all"`', "devices=0", 'devices="all"'),
    "PCB414_kind": ('`devices="all"`', 'devices="cpu"', 'devices="all"'),
    "PCB415_devices": ('`strategy="pc"`', 'strategy="local"', 'strategy="pc"'),
    "PCB415_reverse": ('`strategy="pc"`', 'strategy="local"', 'strategy="pc"'),
    "PCB415_start": ('`strategy="pc"`', 'strategy="local"', 'strategy="pc"'),
    "PCB417_chunk": ("chunk=128", "chunk=2.5", "chunk=128"),
    "PCB417_progress": (
        "`progress=lambda done, total: print(done, total)`",
        'progress="yes"',
        "progress=lambda done, total: print(done, total)",
    ),
    "PCB418_alone": ("a tuple of all arguments", "iter([N]), 2", "iter([(N, 2)])"),
    "PCB418_keyword": ("put `k` into the chunks", "iter([N, N]), k=N", "zip([N, N], [N, N])"),
    "PCB418_none": ("one of no inputs", "iter([])", "iter([(N[:0], 2)])"),
    "PCB418_shared": ("the same in every chunk", "(N, 3)", "(N, 2)"),
    "PCB418_types": ("the shapes and dtypes of the first", "N + 0.5", "N + 5"),
    "PCB419_iterator": ("whole arrays and no more", "iter([ns])", "ns"),
    "PCB419_progress": ("whole arrays and no more", ", progress=print", ""),
    "PCB420_part": ("return what `blocks.visit`", 'blocks.visit(0, carry), "done"', "blocks.visit(0, carry)"),
    "PCB420_types": ("return what `blocks.visit`", '{**carry, "pc": carry["pc"].astype(jnp.int32)}', "carry"),
    "PCB426_choices": ("leave `schedule` out", "learned = True", "learned = False"),
    "PCB426_encoding": ("choose one of 'base', 'max', 'sort'", '"sorted"', '"sort"'),
    "PCB426_episodes": ("`episodes=100`", "episodes=-1", "episodes=100"),
    "PCB426_lanes": ('`fork="auto"`', 'fork="never"', 'fork="auto"'),
    "PCB426_plain": ("`@pcbatch.batch`", "f.fn, n", "f, n"),
    "PCB426_samples": ("give a batch of typical inputs", "n[:0], k[:0]", "n, k, episodes=5"),
    "PCB427_list": ("`schedules=['sweep']`", 'schedules="sweep"', "schedules=['sweep']"),
    "PCB427_seconds": ("`seconds=30`", "seconds=0", "seconds=5"),
    "PCB427_stale": ("`tuned = f.tune(*args)`", "tuned = halvings", "tuned = thirds"),
    "PCB427_traced": ("outside of `jax.jit`", "jax.jit(best)(n)", "best(n)"),
    "PCB426_seconds": ("leave seconds out", ", seconds=-30", ""),
    "PCB426_traced": ("outside of `jit`", "jax.jit(learn)(n)", "learn(n)"),
    "PCB424_reverse": (
        "as a `while` or `for` statement",
        "x, n = grown(x) - 9, n - 1",
        "n -= 1\n        while x < 10.0:\n            x = 2 * x\n        x -= 9",
    ),
    "PCB430_symbolic": ("give that axis a number", "(a, b), jnp", "(a, 3), jnp"),
    "PCB431_axis": ("from -1 to 0", "(0, -2)", "(0, -1)"),
    "PCB431_kind": ("the number of the axis", '"last"', "0"),
    "PCB431_structure": ("one axis for all of it", "(0, 0, 0)", "0"),
    "PCB432_call": ("`out_axes=0`", "out_axes=(0, None)", "out_axes=0"),
    "PCB440_donated": ("go on with that one", "m.result()", "later.result()"),
    "PCB440_every": ('`save_to="run.npz"`', "every=10", 'every=10, save_to="run.npz"'),
    "PCB440_pickle": ("`m.save(path)`", "pickle.dumps(down.start(N))", 'down.start(N).save("run.npz")'),
    "PCB440_save_to_twice": ("leave `checkpoint` out", ', checkpoint="run.npz"', ""),
    "PCB440_timeout": ("`timeout=60`", "timeout=-1", "timeout=60"),
    "PCB440_trips": ("max_trips=10_000", "advance(2.5)", "advance(max_trips=10_000)"),
    "PCB441_save_to": ("call it outside of `jax.jit`", 'jax.jit(lambda n: down(n, save_to="run.npz"))', "down"),
    "PCB442_folder": ('"run.npz"', "/no/such/folder/run.npz", "run.npz"),
    "PCB443_arguments": ("give another path", 'N + 1, save_to=folder / "run.npz"', 'N + 1, save_to=folder / "b.npz"'),
    "PCB443_kind": ("go on with what wrote it", "down.load(", "down.map(iter([N, N]), save_to="),
    "PCB443_packed": ("`f.load(path, *args)`", 'load(folder / "run.npz")', 'load(folder / "run.npz", nodes)'),
    "PCB443_setting": (
        "`jax.config.update('jax_default_matmul_precision', None)`",
        'with jax.default_matmul_precision("float32"):\n    ',
        "jax.config.update('jax_default_matmul_precision', None)\n",
    ),
    "PCB443_stream": ("go on with what wrote it", "N + 1", "N"),
    "PCB443_types": ("`f.load(path, *args)`", 'load(folder / "run.npz")', 'load(folder / "run.npz", Pair(N, N))'),
    "PCB444_frames": ('`max_memory="2MB"`', 'max_memory="1MB"', 'max_memory="2MB"'),
    "PCB444_queue": ('`max_memory="425kB"`', "max_memory=10_000", 'max_memory="425kB"'),
    "PCB901_recursion": ("`max_depth=8`", "max_depth=4", "max_depth=16"),
    "PCB901_two_places": ("f.run(...)", "f(jnp.array([20, 2, 31]))", "f.run(jnp.array([20, 2, 31]))"),
    "PCB901_and_902": ("f.run(...)", "f(jnp.array([2, 9, 200, 5]))", "f.run(jnp.array([2, 9, 200, 5]))"),
    "PCB902_loop": ("raise `max_steps`", "max_steps=50", "max_steps=1000"),
    "PCB903_assert": ("`mean.run(...)`", "\nmean(", "\nmean.run("),
    "PCB904_raise": ("`root.run(...)`", "\nroot(", "\nroot.run("),
    "PCB910_inf": ("with `jnp.where`", "1 / (x - 3)", "jnp.where(x == 3, 0.0, 1 / jnp.where(x == 3, 1.0, x - 3))"),
    "PCB910_nan": ("with `jnp.where`", "jnp.log(gap)", "jnp.log(jnp.where(gap > 0, gap, 1.0))"),
}
GUIDANCE = {
    "PCB426_another": "there is nothing to learn about the other program",
    "PCB441_start": "a handle of a run has no counterpart inside a transformation",
    "PCB442_changed": "the bytes of the file are lost",
    "PCB442_missing": "only the user knows the path",
    "PCB901_memory": "what the inputs should be is not known to the program",
    "PCB905_loop": "the lanes never end",
}


@pytest.fixture(autouse=True)
def as_users_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The programs are those of users, who have not asked for the strictness of this suite."""
    monkeypatch.chdir(tmp_path)
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_the_help_says_works(name: str, tmp_path: Path) -> None:
    said, old, new = FOLLOWED[name]
    helps = re.findall(r"= help: (.*)", (FOLDER / f"{name}.err").read_text("utf-8"))
    assert any(said in help for help in helps)
    text = (FOLDER / f"{name}.py").read_text("utf-8")
    assert old in text
    file = tmp_path / f"{name}.py"
    file.write_text(text.replace(old, new), encoding="utf-8")
    runpy.run_path(str(file))


def test_every_program_is_followed_or_says_why_not() -> None:
    assert sorted({*FOLLOWED, *GUIDANCE}) == PROGRAMS
    assert not FOLLOWED.keys() & GUIDANCE.keys()


def test_every_code_of_use_and_run_time_is_among_them() -> None:
    """By a program here, or by the right one on its page."""
    text = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    codes = set(re.findall(r'"(PCB[49]\d\d)"', text))
    assert codes <= {name[:6] for name in PROGRAMS} | {page.code for page in pages().values() if page.good}
