"""The plan of a function, and the names of the earlier release that it stands for."""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import Plan, UsageError
from pcbatch.api.old_names import PUBLIC
from pcbatch.options import Numbers, Options
from pcbatch.plan import Dense, Few, Kernel, Strips
from tests.programs.classics import fib
from tests.programs.control import collatz

PLANS = [
    Plan(),
    Plan(schedule="sweep", emitter="guard", modes={"n // 2": Few(8), "bb0": Dense(2)}, unroll=1, narrow=False),
    Plan(emitter=Kernel(tile=8), fork="never"),
    Plan(modes=Strips(4), narrow=True, unroll=3, fork="always"),
]
NUMBERS = np.arange(1, 9, dtype=np.int32)


class Backwards:
    """A policy that is no part of a file."""

    name = "backwards"

    def trip(self, blocks: Any, carry: Any) -> Any:
        return blocks.visit(0, carry)


@pytest.mark.parametrize("plan", PLANS, ids=str)
class TestValue:
    """A plan is a value: text, hash, file and pickle give it again."""

    def test_its_text_is_an_expression(self, plan: Plan) -> None:
        assert eval(repr(plan), {"pcbatch": pcbatch}) == plan == pickle.loads(pickle.dumps(plan))
        assert hash(plan) == hash(eval(repr(plan), {"pcbatch": pcbatch}))

    def test_a_file_keeps_it(self, plan: Plan, tmp_path: Path) -> None:
        plan.save(tmp_path / "plan.json")
        assert Plan.load(tmp_path / "plan.json") == plan

    def test_options_have_it(self, plan: Plan) -> None:
        assert pcbatch.batch(collatz, plan=plan).with_options(stats=True).options.plan == plan
        assert len({Options(plan=plan), Options(plan=plan)}) == 1


def test_the_text_has_what_differs() -> None:
    assert repr(Plan()) == "pcbatch.Plan()"
    assert (
        repr(Plan(narrow=False, modes={"x": Few(2)})) == 'pcbatch.Plan(modes={"x": pcbatch.Few(width=2)}, narrow=False)'
    )


def test_a_change_of_the_given_modes_is_none_of_the_plan() -> None:
    modes: dict[str, Any] = {"n": Dense()}
    plan = Plan(modes=modes)
    modes["m"] = Few(2)
    assert plan == Plan(modes={"n": Dense()})


@pytest.mark.parametrize(
    "wrong",
    [{"schedule": "random"}, {"emitter": "mask"}, {"modes": "dense"}, {"unroll": 0}, {"narrow": 1}, {"fork": "maybe"}],
)
def test_wrong_fields_are_refused_where_the_plan_is_made(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="PCB401"):
        Plan(**wrong)
    with pytest.raises(UsageError, match=r"PCB401(.|\n)*plan must be a `pcbatch.Plan`"):
        pcbatch.batch(collatz, plan=wrong)


def test_a_policy_of_the_users_is_in_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="PCB427"):
        Plan(schedule=Backwards()).save(tmp_path / "plan.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"plan": 3}', '{"plan": {"speed": 3}}', '{"plan": {"modes": {"A": 1}}}']
)
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(UsageError, match=r"PCB427(.|\n)*holds no plan"):
        Plan.load(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("f", "plan"),
    [
        (collatz, Plan(emitter="scalar")),
        (fib, Plan(fork="always")),
        (pcbatch.batch(collatz, stats=True), Plan(schedule="sweep", emitter="guard")),
        (pcbatch.batch(collatz, plan=Plan(schedule="largest", unroll=2)), Plan("largest", "guard", unroll=2)),
    ],
)
def test_the_plan_in_force_is_explained_and_stays_in_force(f: Any, plan: Plan) -> None:
    f = f if isinstance(f, pcbatch.Batched) else pcbatch.batch(f)
    explained = f.explain_schedule(NUMBERS)
    assert explained.plan == plan and str(explained).startswith(f"plan in force: {plan}\n")
    again = f.with_options(plan=plan)
    assert again.explain_schedule(NUMBERS).plan == plan
    assert again(NUMBERS).tolist() == f(NUMBERS).tolist()


def test_the_signature_shows_the_options() -> None:
    shown = inspect.signature(pcbatch.batch).parameters
    assert list(shown) == ["fn", *Options.__dataclass_fields__, "old"]
    assert {name: shown[name].default for name in Options.__dataclass_fields__} == vars_of(Options())


def vars_of(options: Options) -> dict[str, Any]:
    return {name: getattr(options, name) for name in Options.__dataclass_fields__}


def told(call: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a call gives, and its warnings, each of which is for the line of this file."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        value = call()
    assert all(w.category is DeprecationWarning and w.filename == __file__ for w in given)
    assert all(str(w.message).startswith("\nwarning[PCB429]: ") for w in given)
    return value, [str(w.message).rpartition("  = help: ")[2] for w in given]


class TestEarlierRelease:
    """Each name of it does what it did, and gives one warning that says what to write."""

    @pytest.mark.parametrize(
        ("old", "new", "written"),
        [
            ({"schedule": "sweep"}, {"plan": Plan(schedule="sweep")}, 'plan=pcbatch.Plan(schedule="sweep")'),
            ({"emitter": "mask"}, {"plan": Plan(emitter="guard")}, 'plan=pcbatch.Plan(emitter="guard")'),
            ({"modes": Few(3)}, {"plan": Plan(modes=Few(3))}, "plan=pcbatch.Plan(modes=pcbatch.Few(width=3))"),
            ({"unroll": 2}, {"plan": Plan(unroll=2)}, "plan=pcbatch.Plan(unroll=2)"),
            ({"narrow": False}, {"plan": Plan(narrow=False)}, "plan=pcbatch.Plan(narrow=False)"),
            ({"fork": "never"}, {"plan": Plan(fork="never")}, 'plan=pcbatch.Plan(fork="never")'),
            ({"overflow": "fail"}, {}, 'numbers="python"'),
            ({"overflow": "wrap"}, {"numbers": Numbers("wrap", "raise")}, 'numbers="jax"'),
            ({"math_errors": "nan"}, {"numbers": Numbers("fail", "nan")}, 'numbers="jax"'),
            ({"command_buffers": False}, {}, "XLA_FLAGS"),
        ],
    )
    def test_options(self, old: dict[str, Any], new: dict[str, Any], written: str) -> None:
        for use in (pcbatch.batch, pcbatch.batch(collatz).with_options):
            made, helps = told(lambda use=use: use(collatz, **old) if use is pcbatch.batch else use(**old))
            assert made.options == Options(**new)
            assert len(helps) == 1 and written in helps[0]

    def test_several_of_them(self) -> None:
        f, helps = told(
            lambda: pcbatch.batch(collatz, schedule="sweep", fork="never", overflow="wrap", math_errors="nan")
        )
        assert f.options == Options(plan=Plan(schedule="sweep", fork="never"), numbers="jax")
        assert (
            helps == ['write `plan=pcbatch.Plan(schedule="sweep", fork="never")`'] * 2 + ['write `numbers="jax"`'] * 2
        )

    def test_others_of_the_plan_stay(self) -> None:
        f = pcbatch.batch(collatz, plan=Plan(unroll=1))
        assert told(lambda: f.with_options(narrow=True))[0].options.plan == Plan(unroll=1, narrow=True)

    @pytest.mark.parametrize("both", [{"plan": Plan(), "fork": "never"}, {"numbers": "jax", "overflow": "wrap"}])
    def test_not_beside_the_new_ones(self, both: dict[str, Any]) -> None:
        for use in (lambda: pcbatch.batch(**both), lambda: pcbatch.batch(collatz).with_options(**both)):
            with pytest.raises(UsageError, match=r"PCB401(.|\n)*are both given"):
                use()

    @pytest.mark.parametrize("wrong", [{"overflow": "grow"}, {"math_errors": "ignore"}, {"fork": "maybe"}])
    def test_wrong_values_are_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(UsageError, match="PCB401"):
            pcbatch.batch(collatz, **wrong)

    def test_rules_of_numbers_that_are_neither(self) -> None:
        f, _ = told(lambda: pcbatch.batch(lambda n: n * n, overflow="wrap"))
        assert f(jnp.array([65536], jnp.int32)).tolist() == [0]

    @pytest.mark.parametrize("name", PUBLIC)
    def test_public_names(self, name: str) -> None:
        value, helps = told(lambda: getattr(pcbatch, name))
        assert value is not None and len(helps) == 1 and name not in pcbatch.__all__
        names: dict[str, Any] = {}
        statement = compile(f"from pcbatch import {name}", __file__, "exec")
        assert told(lambda: exec(statement, names))[1] == helps and names[name] is value


def test_names_that_are_near() -> None:
    for wrong, help in {"max_dept": "did you mean `max_depth`?", "schedul": "pcbatch.Plan(schedule=...)"}.items():
        with pytest.raises(UsageError, match=r"PCB401(.|\n)*choose from in_axes, out_axes") as info:
            pcbatch.batch(**{wrong: 3})
        assert help in str(info.value)
    with pytest.raises(AttributeError, match="module 'pcbatch' has no attribute 'Batche'"):
        _ = pcbatch.Batche
