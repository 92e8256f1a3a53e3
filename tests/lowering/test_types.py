"""Corners of type inference: what is refused, what is known, how values join."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch import CompileError
from pcbatch.api.dump import dump
from pcbatch.lowering.typing.abstract_values import Abstract, JoinError, Known, known, leaf_names
from pcbatch.lowering.typing.jax_types import from_aval
from pcbatch.lowering.typing.join_types import join

N = np.array([0, 1, 5], np.int32)
F16, F32, I32 = (from_aval(jax.ShapeDtypeStruct((), dtype)) for dtype in (jnp.float16, jnp.float32, jnp.int32))


def code_of(fn: Callable[..., Any], *args: Any) -> str:
    """The code of the only diagnostic, which has a line and a way out."""
    with pytest.raises(CompileError) as info:
        pcbatch.batch(fn)(*args)
    (diagnostic,) = info.value.diagnostics
    assert diagnostic.primary is not None and (diagnostic.helps or diagnostic.notes), str(info.value)
    return diagnostic.code


def abstract_of(types: Any) -> Abstract:
    """From a pytree whose leaves are types."""
    leaves, tree = jax.tree.flatten(types)
    return Abstract(tree, tuple(leaves))


class Box:
    """Not a pytree."""

    def __init__(self, value: object) -> None:
        self.value = value


class TestRefusals:
    """What a lane cannot compute or keep."""

    def test_an_element_that_a_helper_replaces(self) -> None:
        def clear(items):
            items[0] = 0
            return items[1]

        def fn(n):
            pair = [n, n + 1]
            k = clear(pair)
            return pair[0] + k

        np.testing.assert_array_equal(pcbatch.batch(fn)(N), N + 1)

    def test_a_list_that_a_helper_lengthens(self) -> None:
        def more(items):
            items.append(1)
            return len(items)

        def fn(n):
            pair = [n, n + 1]
            return n + more(pair)

        np.testing.assert_array_equal(pcbatch.batch(fn)(N), N + 3)

    def test_a_side_effect(self) -> None:
        def show(n):
            jax.debug.print("{}", n)
            return n

        def fn(n):
            return show(n)

        assert code_of(fn, N) == "PCB304"

    def test_an_object_that_holds_values_of_a_lane(self) -> None:
        def fn(n):
            box = Box(n)
            return box.value

        np.testing.assert_array_equal(pcbatch.batch(fn)(N), N)

    def test_a_variable_that_changes_its_shape(self) -> None:
        def fn(n):
            x = jnp.zeros(1)
            if n > 2:
                x = jnp.zeros(3)
            return x

        assert code_of(fn, N) == "PCB301"

    def test_dtypes_that_strict_promotion_keeps_apart(self) -> None:
        def fn(n, x):
            if n > 2:
                y = n
            else:
                y = x
            return y

        assert code_of(fn, N, np.ones(3, np.float32)) == "PCB301"

    def test_a_result_that_is_no_array(self) -> None:
        def fn(n):
            return math

        assert code_of(fn, N) == "PCB311"

    def test_a_loop_without_a_way_out(self) -> None:
        def fn(n):
            while True:
                n = n + 1
            return n

        assert code_of(fn, N) == "PCB310"

    def test_a_variable_without_a_value_before_types_are_known(self) -> None:
        def fn(n):
            if n > 1:
                return y  # noqa: F821
            y = n
            return y

        with pytest.raises(CompileError, match="PCB201"):
            dump(pcbatch.batch(fn), "cfg", None, 1)

    def test_a_variable_that_one_path_assigns_before_types_are_known(self) -> None:
        def fn(n):
            if n > 1:
                y = n
            return y

        assert "UnboundLocalError" in dump(pcbatch.batch(fn), "cfg", None, 1)


class TestKnown:
    """Values that are the same for every lane."""

    def test_a_function_in_a_variable(self) -> None:
        def fn(x):
            op = jnp.sin
            for _ in range(2):
                x = op(x)
            return x

        x = np.ones(3, np.float32)
        np.testing.assert_allclose(pcbatch.batch(fn)(x), np.sin(np.sin(x)), rtol=1e-6)

    def test_type_and_value_decide(self) -> None:
        assert Known(1) == Known(1) != Known(True) != Known(1.0)
        assert Known("a") == Known("a") != "a"

    def test_values_that_cannot_be_compared_are_themselves(self) -> None:
        class Odd:
            def __eq__(self, other: object) -> bool:
                raise ValueError

            __hash__ = object.__hash__

        one, two = Odd(), Odd()
        assert Known(one) == Known(one) != Known(two)


class TestJoin:
    """The least type that covers two values."""

    def test_a_number_gives_way_to_any_array_of_its_kind(self) -> None:
        one, other = join(known(2), abstract_of(F16)), join(abstract_of(F16), known(0.5))
        assert one == other and one.leaves == (F16,)
        assert str(join(known(2), known(3)).leaves[0]) == "~i32[]"

    @pytest.mark.promotion("standard")
    def test_the_wider_one_wins_from_both_sides(self) -> None:
        assert join(abstract_of(I32), abstract_of(F32)) == join(abstract_of(F32), abstract_of(I32)) == abstract_of(F32)
        assert join(abstract_of(F16), abstract_of(F32)) == join(abstract_of(F32), abstract_of(F16)) == abstract_of(F32)

    def test_what_has_no_common_type(self) -> None:
        for a, b in ((known("a"), known(len)), (known(1), abstract_of((I32,))), (abstract_of(I32), abstract_of(F32))):
            with pytest.raises(JoinError):
                join(a, b)

    def test_it_follows_the_configuration_of_jax(self) -> None:
        u32, i64 = (from_aval(jax.ShapeDtypeStruct((), np.dtype(name))) for name in ("uint32", "int64"))
        for x64, wide in ((True, i64), (False, I32), (True, i64)):
            with jax.enable_x64(x64), jax.numpy_dtype_promotion("standard"):
                assert join(abstract_of(u32), abstract_of(I32)) == abstract_of(wide)
            with jax.numpy_dtype_promotion("strict"), pytest.raises(JoinError):
                join(abstract_of(u32), abstract_of(I32))

    def test_names_of_leaves_differ(self) -> None:
        odd = abstract_of({"a b": I32, "_a_b": I32, "a": {"b": I32}})
        assert len(set(leaf_names("d", odd))) == 3
        plain = abstract_of({"q": I32, "p": (F32, F32)})
        assert leaf_names("s", plain) == ("s.p._0", "s.p._1", "s.q")


def test_what_a_known_condition_excludes_is_not_reported() -> None:
    def head(x):
        y = None
        if x.ndim == 1:
            y = x[0]
        if y is None:
            return x.no_such_attribute
        return y + 1

    assert pcbatch.batch(head)(jnp.ones((2, 3))).tolist() == [2, 2]


def test_a_text_that_only_python_knows_is_shown_in_words() -> None:
    assert str(Abstract(jax.tree.structure((0,)), (Known("\0"),))) == "(a text of Python's,)"
