"""Bad input: every kind gets an error with a code, the user's own line (marked `# here`) and a way out."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError

N = np.array([1, 2, 3], np.int32)
X = np.ones((3, 2), np.float32)


def type_change_in_loop(n):
    acc = jnp.zeros(1)
    while n > 0:
        acc = jnp.append(acc, 1.0)  # here
        n -= 1
    return acc


def structure_change_in_loop(n):
    state = (n, n)
    while n > 0:
        state = {"n": n}  # here
        n -= 1
    return state


def returns_of_different_shape(n):
    if n > 1:
        return jnp.zeros(2)
    return jnp.zeros(3)  # here


def returns_of_different_structure(n):
    if n > 1:
        return {"n": n}
    return n, n  # here


def unbound(n):
    y = y + n  # here  # noqa: F821
    return y


def no_base_case(n):
    return no_base_case(n - 1) + 1  # here


def no_return(n):  # here
    n = n + 1


def falls_off_the_end(n):  # here
    if n > 1:
        return n


def bare_return(n):
    if n > 1:
        return  # here
    return n


def changes_an_array_of_two_names(n):
    items = np.zeros(2)
    same = items if n > 1 else np.ones(2)
    items[0] = n  # here
    return same[0]


def assigns_an_element_of_a_view(x):
    part = x[1:]
    x[0] = 1.0  # here
    return part


def assigns_an_attribute(n):
    n.real = 3  # here
    return n


def vector_condition(x):
    if x > 0:  # here
        return 1
    return 0


def vector_while(x):
    while x > 0:  # here
        x = x - 1
    return x


def lane_value_as_shape(n):
    return jnp.sum(jnp.zeros(n))  # here


def the_line_itself_fails(x):
    n = 3
    return x @ jnp.ones((n, n))  # here


def unknown_name(n):
    return n + undefined_thing  # here # noqa: F821


def uses_a_caught_exception(n):
    try:
        return 1 // n
    except ZeroDivisionError as error:
        return len([error])  # here


def uses_with(n):
    with jax.default_matmul_precision("highest"):  # here
        return n


def raises_a_value(n):
    error = ValueError("no")
    if n > 3:
        raise error  # here
    return n


def raises_from_another(n):
    if n > 3:
        raise ValueError("no") from KeyError("k")  # here
    return n


def raises_again(n):
    if n > 3:
        raise  # here
    return n


def always_fails(n):
    assert n.ndim == 1, f"a vector, not {n.ndim} axes"  # here
    return n


def uses_yield(n):
    n = yield n  # here


async def uses_async(n):  # here
    return n


def uses_global(n):
    global N  # here
    N = n
    return n


def uses_import(n):
    import no_such_module  # here # noqa: F401

    return n


def uses_class(n):
    class Local:  # here
        pass

    return n


def uses_a_deleted_name(n):
    m = {"a": n}
    del m  # here
    return m["a"]  # noqa: F821


def reverses_a_zip(x):
    total = 0.0
    for a, b in reversed(zip(x, x)):  # here
        total += a * b
    return total


def prints_as_a_value(n):
    m = print(n)  # here
    return n if m is None else m


def prints_to_a_file(n):
    print(n, file=linecache)  # here
    return n


def prints_unpacked(n):
    pair = (n, n)
    print(*pair)  # here
    return n


def prints_a_made_format(n):
    jax.debug.print("n = {}" + "!", n)  # here
    return n


def prints_too_few(n):
    jax.debug.print("{} {}", n)  # here
    return n


def prints_in_a_helper(n):
    def helper(m):
        jax.debug.print("{}", m)
        return m

    return helper(n)  # here


@pcbatch.batch
def callee(a, b=1, *, c=2):
    if a > b:
        return a
    return b + c


def too_many_arguments(n):
    return callee(n, n, n)  # here


def unknown_keyword(n):
    return callee(n, d=3)  # here


def missing_argument(n):
    return callee(b=n)  # here


def star_arguments(n):
    three = (n, n, n)
    return callee(*three)  # here


def argument_of_two_types(n, x):
    return callee(n) + callee((n, x))[0]  # here


ROWS: list[tuple[Callable[..., Any], tuple[Any, ...], str]] = [
    (type_change_in_loop, (N,), "PCB301"),
    (structure_change_in_loop, (N,), "PCB301"),
    (returns_of_different_shape, (N,), "PCB302"),
    (returns_of_different_structure, (N,), "PCB302"),
    (unbound, (N,), "PCB201"),
    (no_base_case, (N,), "PCB309"),
    (changes_an_array_of_two_names, (N,), "PCB330"),
    (assigns_an_element_of_a_view, (X,), "PCB330"),
    (assigns_an_attribute, (N,), "PCB303"),
    (vector_condition, (X,), "PCB3"),
    (vector_while, (X,), "PCB3"),
    (lane_value_as_shape, (N,), "PCB30"),
    (the_line_itself_fails, (X,), "PCB303"),
    (unknown_name, (N,), "PCB"),
    (uses_a_caught_exception, (N,), "PCB101"),
    (uses_with, (N,), "PCB102"),
    (raises_a_value, (N,), "PCB103"),
    (raises_from_another, (N,), "PCB103"),
    (raises_again, (N,), "PCB103"),
    (always_fails, (N,), "PCB317"),
    (uses_yield, (N,), "PCB1"),
    (uses_async, (N,), "PCB1"),
    (uses_global, (N,), "PCB1"),
    (uses_import, (N,), "PCB1"),
    (uses_class, (N,), "PCB1"),
    (uses_a_deleted_name, (N,), "PCB2"),
    (reverses_a_zip, (X,), "PCB"),
    (prints_as_a_value, (N,), "PCB119"),
    (prints_to_a_file, (N,), "PCB119"),
    (prints_unpacked, (N,), "PCB119"),
    (prints_a_made_format, (N,), "PCB119"),
    (prints_too_few, (N,), "PCB119"),
    (prints_in_a_helper, (N,), "PCB304"),
    (too_many_arguments, (N,), "PCB204"),
    (unknown_keyword, (N,), "PCB204"),
    (missing_argument, (N,), "PCB204"),
    (star_arguments, (N,), "PCB"),
    (argument_of_two_types, (N, X), "PCB307"),
]


def marked_lines(fn: Callable[..., Any]) -> set[int]:
    """The lines of the function that carry the mark."""
    lines, start = inspect.getsourcelines(fn)
    return {start + k for k, line in enumerate(lines) if "# here" in line}


@pytest.mark.parametrize("strategy", ["pc", "local"])
@pytest.mark.parametrize(("fn", "args", "code"), ROWS, ids=[fn.__name__ for fn, _, _ in ROWS])
def test_refused_at_its_line(fn: Callable[..., Any], args: tuple[Any, ...], code: str, strategy: str) -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn, strategy=strategy)(*args)
    diagnostics = info.value.diagnostics
    assert any(d.code.startswith(code) for d in diagnostics), [d.code for d in diagnostics]
    found = next(d for d in diagnostics if d.code.startswith(code))
    assert found.primary is not None and found.primary.loc.file == __file__
    spans = {found.primary.loc.line, *(label.loc.line for label in found.secondary)}
    assert spans & marked_lines(fn), (found.primary.loc.line, marked_lines(fn))
    assert all(d.helps for d in diagnostics), str(info.value)
    assert found.title == found.title[0].lower() + found.title[1:] or found.title.startswith("`")
    assert "^" in str(info.value) and "tests" not in found.title
    assert info.value.__cause__ is None or info.value.__suppress_context__


def test_all_errors_of_a_function_at_once() -> None:
    def many(n):
        del n
        import no_such_module  # noqa: F401

        n = yield 3

    with pytest.raises(CompileError) as info:
        pcbatch.batch(many)(N)
    assert len({d.primary.loc.line for d in info.value.diagnostics if d.primary}) >= 2


def test_a_function_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def ghost(n):\n    return n", namespace)
    with pytest.raises(CompileError, match="PCB001"):
        pcbatch.batch(namespace["ghost"])(N)


def test_a_builtin_has_no_source() -> None:
    with pytest.raises((CompileError, pcbatch.UsageError)):
        pcbatch.batch(len)(N)


def test_an_object_that_is_no_function() -> None:
    with pytest.raises((CompileError, pcbatch.UsageError, TypeError)):
        pcbatch.batch(3)(N)


def test_source_made_by_exec_is_found_through_linecache() -> None:
    text = "def made(n):\n    while n > 3:\n        n = n - 2\n    return n\n"
    name = "<made for a test>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    assert np.asarray(pcbatch.batch(namespace["made"])(np.array([9, 2, 6], np.int32))).tolist() == [3, 2, 2]


def test_two_lambdas_on_a_line_are_told_apart_or_refused() -> None:
    pair = (lambda n: n + 1, lambda n: n + 2)  # fmt: skip
    for k, fn in enumerate(pair):
        try:
            result = pcbatch.batch(fn)(N)
        except CompileError as error:
            assert error.diagnostics[0].code == "PCB002"
        else:
            assert np.asarray(result).tolist() == [2 + k, 3 + k, 4 + k]


def test_the_source_line_is_shown() -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(unbound)(N)
    assert "y = y + n" in str(info.value)
    assert str(info.value).lstrip().startswith("error[PCB201]")


def test_the_error_comes_again() -> None:
    batched = pcbatch.batch(unbound)
    for _ in range(2):
        with pytest.raises(CompileError):
            batched(N)


def rounded(x):
    return jax.pure_callback(np.round, jax.ShapeDtypeStruct((), jnp.float32), x)


def not_for_batches(x):
    return 1 + rounded(x * 2)


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize("strategy", ["pc", "local"])
@pytest.mark.parametrize("way", ["call", "run", "lower", "compile", "jaxpr"])
def test_what_cannot_be_batched_is_told_at_its_line(strategy: str, way: str) -> None:
    f = pcbatch.batch(not_for_batches, strategy=strategy)
    acts: dict[str, Callable[[], Any]] = {
        "call": lambda: f(ONES),
        "run": lambda: f.run(ONES),
        "lower": lambda: f.lower(ONES).as_text("stablehlo"),
        "compile": lambda: f.lower(ONES).compile(),
        "jaxpr": lambda: f.lower(ONES).as_text("jaxpr"),
    }
    with pytest.raises(CompileError) as info:
        acts[way]()
    (found,) = info.value.diagnostics
    assert found.code == "PCB313" and found.primary is not None
    assert found.primary.loc.line == not_for_batches.__code__.co_firstlineno + 1
    assert [label.text for label in found.secondary] == ["in `rounded`"]
    assert info.value.__cause__ is None and info.value.__suppress_context__


def failing_callback(x):
    def fail(value):
        raise ValueError("no luck")

    return jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method="expand_dims")


def test_failures_of_a_callback_stay_what_they_are() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck"):
        pcbatch.batch(failing_callback)(ONES)


def log_after_loop(x):
    while x < 2:
        x = x + 1
    return jnp.log(2 - x)


@pytest.mark.parametrize("strategy", ["pc", "local"])
def test_debug_nans_names_the_line_and_the_lane(strategy: str) -> None:
    f = pcbatch.batch(log_after_loop, strategy=strategy)
    x = jnp.array([0.0, 0.5, 2.0], jnp.float32)
    assert np.isnan(f(x)).tolist() == [False, True, False]
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as info:
        f(x)
    assert isinstance(info.value, pcbatch.BatchRuntimeError)
    (found,) = info.value.diagnostics
    assert found.primary is not None and found.primary.loc.line == log_after_loop.__code__.co_firstlineno + 3
    assert found.notes[0] == "lane 1 (x=0.5)"


def test_debug_nans_gives_up_on_long_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcbatch.lowering.diagnose.find_non_finite.MOST_STEPS", 2)
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as info:
        pcbatch.batch(log_after_loop)(jnp.array([0.5], jnp.float32))
    assert not isinstance(info.value, pcbatch.PcbatchError)


def test_debug_nans_lets_failed_lanes_be_told_as_such() -> None:
    @pcbatch.batch(max_steps=20)
    def endless(x):
        while x > 0.0:
            x = x + 0.0
        return x

    with jax.debug_nans(True), pytest.raises(pcbatch.BatchRuntimeError, match="PCB902"):
        endless(jnp.array([0.0, 1.0], jnp.float32))


@pytest.mark.together
def test_failures_of_several_kinds_in_one_report() -> None:
    @pcbatch.batch(max_depth=3, max_steps=60)
    def f(n, pair, key):
        while n > 100:
            n = n + 0
        return 0 if n < 1 else 1 + f(n - 1, pair, key)

    n = jnp.array([2, 9, 200, 5])
    with pytest.raises(pcbatch.BatchRuntimeError) as info:
        f(n, (n * 2, jnp.zeros((4, 2))), jax.random.split(jax.random.key(0), 4))
    full, slow = info.value.diagnostics
    assert (full.code, slow.code) == ("PCB901", "PCB902")
    assert "1 (n=9, pair._0=18, pair._1=[0. 0.], 3 calls deep)" in full.notes[0]
    assert "2 (n=200, " in slow.notes[0] and "0 calls deep" in slow.notes[0]
    assert all("the machine made" in found.notes[1] for found in (full, slow))


def test_our_own_frames_are_not_shown() -> None:
    with pytest.raises(CompileError) as info:
        pcbatch.batch(unbound)(N)
    frames = [entry.path.name for entry in info.traceback if "pcbatch" in entry.path.parts[-2:]]
    assert set(frames) <= {"api.py"}
