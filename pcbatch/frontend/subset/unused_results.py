"""Helps for statements whose value is not used, and for batched functions that are not called."""

from __future__ import annotations

import builtins
import dis
import inspect
from types import CodeType, FunctionType
from typing import Any

import gast
import jax
import numpy as np

from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.resolve import MISSING, resolve
from pcbatch.frontend.source.rewrites.clear_changes import only_raises
from pcbatch.frontend.source.streams import consumer, lazy
from pcbatch.frontend.source.tree import Node, attribute, load, one_line, rebuild

LEAVE = "assign its value to a variable, or leave it out"
CHOICES = "call it, or pass it to a batched function; write choices and loops out: `f(x) if x > 0 else g(x)`"
THEN = "then what it raises or prints is that of each lane"
CALLBACKS = frozenset({"callback", "io_callback", "pure_callback", "debug_callback"})
DERIVATIVES = frozenset({"defvjp", "defjvp", "defjvps", "def_vmap"})  # of functions with a derivative of their own
RETURN = "`return 0`"  # a function of lanes has a result
PURE = frozenset({"jax", "numpy", "math", "builtins"})  # packages


def unused_helps(unit: Unit, value: Node) -> tuple[str, ...]:
    """The helps for a statement that is the expression `value`."""
    raises = (f"where it is to raise, assign its value: `_ = {one_line(value)}`", LEAVE)
    if not isinstance(value, gast.Call):
        divides = isinstance(value, gast.BinOp) and isinstance(value.op, gast.Div | gast.FloorDiv | gast.Mod)
        return raises if divides or isinstance(value, gast.Subscript) else (LEAVE,)
    out = next((keyword.value for keyword in value.keywords if keyword.arg == "out"), None)
    if isinstance(out, gast.Name):
        rest = [keyword for keyword in value.keywords if keyword.arg != "out"]
        call = gast.copy_location(gast.Call(func=value.func, args=value.args, keywords=rest), value)
        return (f"assign what it gives: `{out.id} = {one_line(call)}`",)
    name, function = one_line(value.func), resolve(unit, value.func)
    if isinstance(value.func, gast.Name) and name in unit.nested:
        end = f", and end it with {RETURN}"
        return (f"move `{name}` out of the batched function, as a `def` with `@pcbatch.inline`{end}: {THEN}",)
    if isinstance(value.func, gast.Name) and name in unit.variables:
        method = f"where `{name}` is a method such as `out.append`, give it as a function: `lambda x: out.append(x)`"
        kept = f"where it changes variables of its own, write a class with a method, and call that: `{name}.step()`"
        return (method, LEAVE) if name in unit.params else (method, kept, LEAVE)
    if consumer(unit, value) and lazy(unit, value.args[0]) == "map" and len(value.args[0].args) == 2:
        called, elements = map(one_line, value.args[0].args)
        return (f"write `for x in {elements}: {called}(x)`",)
    if getattr(function, "__name__", None) in CALLBACKS:
        return ("print in a statement of the batched function itself; return what is to be saved",)
    if isinstance(function, FunctionType) and str(function.__module__).split(".")[0] not in PURE:
        end = "" if _returns_value(function.__code__) else f", and end it with {RETURN}"
        if function.__code__.co_filename == unit.fn.__code__.co_filename:
            return (f"decorate `{function.__name__}` with `@pcbatch.inline`{end}: {THEN}",)
        wrapped = f"`{name.rpartition('.')[2]} = pcbatch.inline({name})`"
        return (f"wrap it at the top of this file, {wrapped}{end}: {THEN}",)
    if function is np.fill_diagonal and len(value.args) == 2:
        array, filled = map(one_line, value.args)
        return (f"write `{array} = jnp.fill_diagonal({array}, {filled}, inplace=False)`",)
    if function is setattr and len(value.args) == 3 and isinstance(value.args[1], gast.Constant):
        target, attribute, new = value.args
        return (f"write `{one_line(target)}.{attribute.value} = {one_line(new)}`",)
    if function is MISSING and isinstance(value.func, gast.Attribute):
        base = one_line(value.func.value)
        if value.func.attr == "index":
            return raises[:1]
        if value.func.attr in DERIVATIVES:
            return (f"move `{base}` and this statement above the batched function, to the top of the file",)
        if helps := _of_own_method(unit, value):
            return helps
        return (
            f"if it changes `{base}`, make a new value and assign it: `{base} = ...`",
            f"if it raises or prints, decorate `{value.func.attr}` with `@pcbatch.inline` and call it by its class",
        )
    return raises if only_raises(unit, value) else (LEAVE,)


def _of_own_method(unit: Unit, node: Node) -> tuple[str, ...]:
    """The helps for a call of a method of the user's; none where no class has one of this name."""
    base, name = one_line(node.func.value), node.func.attr
    found = {key: inspect.getattr_static(cls, name, None) for key, cls in unit.classes.items()}
    by_class = [key for key, method in found.items() if isinstance(method, staticmethod | classmethod)]
    if by_class:
        method = attribute(load(unit.classes[by_class[0]].__name__, node), name, node)
        return (
            f"call it by its class: `{one_line(rebuild(node, lambda part: method if part is node.func else part))}`",
        )
    if any(isinstance(method, FunctionType) for method in found.values()):
        return (f"assign the object to a variable in a line before, `value = {base}`, and call `value.{name}`",)
    return ()


def value_helps(unit: Unit, target: Target, given_to: Any) -> tuple[str, ...]:
    """The helps for a batched function used as a value; `given_to` is the function it is an argument of, if any."""
    name = target.fn.__name__
    if target.nested is not None:
        return (
            CHOICES,
            "to give a function away that keeps variables, write it as a class: attributes for what it keeps, and a "
            "method that is called, `a.step()`",
        )
    helps = [CHOICES]
    if any(given_to is mapping for mapping in (jax.vmap, jax.lax.map, builtins.map)):
        helps = [
            f"call it in a loop, `for k in range(len(xs)):` with `ys = ys.at[k].set({name}(xs[k]))`, after "
            "`ys = jnp.zeros(len(xs))`"
        ]
    if _is_straight(unit, target.fn):
        helps.append(f"where the function of one example is meant, write `{name}.plain`")
    return tuple(helps)


def _returns_value(code: CodeType) -> bool:
    """Whether any `return` of a function gives another value than None."""
    instructions = list(dis.get_instructions(code))
    for before, instruction in zip([instructions[0], *instructions], instructions, strict=False):
        if instruction.opname == "RETURN_VALUE" and not (before.opname == "LOAD_CONST" and before.argval is None):
            return True
        if instruction.opname == "RETURN_CONST" and instruction.argval is not None:
            return True
    return False


def _is_straight(unit: Unit, fn: FunctionType) -> bool:
    """Whether a function has no branches, loops or calls of batched functions, so that JAX alone can trace it."""
    jumps = {*dis.hasjrel, *dis.hasjabs}
    if any(instruction.opcode in jumps for code in _codes(fn.__code__) for instruction in dis.get_instructions(code)):
        return False
    read = [fn.__globals__.get(name) for code in _codes(fn.__code__) for name in code.co_names]
    return all(value is None or unit.batched(value) is None for value in read)


def _codes(code: CodeType) -> list[CodeType]:
    return [code, *(c for const in code.co_consts if isinstance(const, CodeType) for c in _codes(const))]
