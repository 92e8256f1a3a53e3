"""Calls of functions of the program: all that is known before their arguments are evaluated, and then their operations.

s = total(xs, g)       ==>       s, xs = call @total(xs, y)       where `total` changes `xs`, and `g` reads y
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import gast

from pcbatch.frontend.build.builder import Builder
from pcbatch.frontend.build.evaluation_order import check_apart, returned_by
from pcbatch.frontend.build.iteration.kept_iterators import taken_once
from pcbatch.frontend.build.mutations import Given, given_places
from pcbatch.frontend.build.primitives import default_expr
from pcbatch.frontend.source.bind_call import Binding, bind
from pcbatch.frontend.source.callee import Statics, Target, is_static
from pcbatch.frontend.source.rewrites.method_calls import MADE
from pcbatch.frontend.source.rewrites.nested import scope_of, static_value
from pcbatch.frontend.source.rewrites.none_defaults import none_arguments
from pcbatch.frontend.source.tree import Node, constant, is_none
from pcbatch.ir.cfg import Call
from pcbatch.ir.names import MEMO
from pcbatch.ir.ops import Move, Prim


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call whose arguments are not evaluated yet.

    Attributes:
        node: the call as it is written.
        target: what it calls.
        binding: the arguments by parameter.
        functions: the nested functions among them, as the callee knows them.
        statics: the arguments that are known while compiling, these functions among them.
        captured: the variables that the callee and these functions read, by their names in the callee.
        returned: likewise those that they assign or change, which the caller gets as further results.
        given_back: the parameters whose objects the callee changes in place for its caller.
        given: the places of the arguments.
    """

    node: Node
    target: Target
    binding: Binding
    functions: Mapping[str, Target]
    statics: Statics
    captured: Mapping[str, str]
    returned: Mapping[str, str]
    given_back: tuple[str, ...]
    given: Given

    @classmethod
    def of(cls, b: Builder, node: Node, written_out: Node, target: Target) -> CallPlan:
        """Return the plan of a call; `written_out` is the call with its starred arguments written out."""
        binding = bind(b.faults, written_out, target)
        known = {name: value for name, arg in binding.given if is_static(value := static_value(b.unit, arg))}
        functions = {name: value for name, value in known.items() if isinstance(value, Target)}
        captured = dict(target.captured)
        for name, function in functions.items():
            captured |= {f"{name}.{inner}": outer for inner, outer in function.captured}
            known[name] = functions[name] = function.passed_as(name)
        returned = dict(returned_by(b, node, target))
        statics = {name: value for name, _, value in binding.defaults if is_static(value)}
        nothing = [name for name, arg in binding.given if is_none(arg)]
        nothing += [name for name, _, value in binding.defaults if value is None]
        statics |= {**known, **binding.shape, **none_arguments(target, nothing)}
        statics |= {inner: b.unit.statics[outer] for inner, outer in target.captured if outer in b.unit.statics}
        # Functions get their names in the order of their calls, so the name is asked for early only where it is needed.
        may_change = b.symbol.may_change(target)
        given_back = b.symbol.gives_back(_symbol(b, node, target, statics, binding)) if may_change else ()
        if target.cached and (changed := [name for name in (*returned, *given_back) if not name.startswith(MEMO)]):
            _refuse_cached(b, node, target.fn.__name__, changed[0])
        if not given_back and not returned:  # nothing changes meanwhile
            taken = [(name, taken_once(b.unit, target, name, arg)) for name, arg in binding.given]
            binding = replace(binding, given=tuple(taken))
        given = given_places(b, dict(binding.given), given_back)
        return cls(node, target, binding, functions, statics, captured, returned, given_back, given)

    @property
    def nodes(self) -> list[Node]:
        """The arguments to evaluate, in order."""
        return [constant(None, arg) if name in self.functions else arg for name, arg in self.given.nodes.items()]

    def emit(self, b: Builder, dst: str | None, variables: dict[str, str]) -> str:
        """Build the call, with the arguments in variables, by parameter; return the variable of its result."""
        for name, text, default in self.binding.defaults:
            variables[name] = self._default(b, text, default)
        dst = b.temp() if dst is None else dst
        further, results = scope_of(self.target, self.statics)
        outer = {name: self.captured[name] for name in further}
        args = [variables[name] for name in self.binding.order if name in variables]
        args += [name for inner, name in outer.items() if inner not in variables]
        for called in (self.target, *self.functions.values()):
            if called.nested is not None:
                b.uses(called.nested.name, self.node)
        check_apart(b, self.node, self.captured, self.returned)
        catching, loc = bool(b.handlers), b.loc(self.node)
        symbol = _symbol(b, self.node, self.target, self.statics, self.binding)
        assigned, given_back = [self.returned[name] for name in results], list[str]()
        # One object that is given twice comes back twice; the check of ownership decides about that.
        for name in self.given_back:
            given_back.append(self.given.written(b, name, variables, outer, (dst, *assigned, *given_back)))
        written = [*assigned, *given_back]
        codes = [b.temp() for _ in ("code", *b.symbol.parts)] if catching else []
        # The statement assigns its variable after the call, and only if that raises nothing.
        result = b.temp() if dst in written or catching else dst
        given_args = tuple(name for name in given_back if name in args)
        b.emit(Call((result, *written, *codes), symbol, tuple(args), loc, given_args))
        self.given.write_back(b, given_back, self.given_back, self.node)
        if catching:  # what was written back has set the number of the handlers to that of nothing
            b.emit(Move(b.handlers[-1].code, codes[0], loc))
            for variable, given in zip(b.handlers[-1].parts.values(), codes[1:], strict=True):
                b.emit(Move(variable, given, loc))
            b.catch(b.handlers[-1].code, self.node)
        if result != dst:
            b.emit(Move(dst, result, loc))
        return dst

    def _default(self, b: Builder, text: str, default: object) -> str:
        """Build a variable for an argument that exists already; the object of this method goes on as it came."""
        temp, loc = b.temp(), b.loc(self.node)
        same = next((v for v in b.unit.params if v in b.unit.statics and b.unit.statics[v] is default), None)
        b.emit(Move(temp, same, loc) if same is not None else Prim((temp,), default_expr(text, default), loc))
        return temp


def _symbol(b: Builder, node: Node, target: Target, statics: Statics, binding: Binding) -> str:
    """Return the name of the function that a call runs, as it is for calls at this place."""
    first = next((arg for name, arg in binding.given if name == binding.order[0]), None)
    fills = isinstance(first, gast.Name) and bool(b.handlers) and _fills(b, node, first.id)
    return b.symbol(target, statics, bool(b.handlers), fills)


def _fills(b: Builder, node: Node, name: str) -> bool:
    """Whether the first argument of a call is an object that nobody has if it raises what the caller catches: one whose
    `__init__` runs, by itself or through one of its methods."""
    if b.fills and len(b.handlers) == 1 and not b.finals and name == b.unit.params[0]:
        return True
    return name.startswith(f"{MADE}_") and isinstance(node.func, gast.Attribute) and node.func.attr == "__init__"


def _refuse_cached(b: Builder, node: Node, name: str, changed: str) -> None:
    """Report a call that Python makes only where it has not been made before, and whose change each lane would make."""
    title = f"`{name}` is kept in a cache of Python's, and changes `{changed}`"
    notes = ("Python makes equal calls once, so the change is made once; a lane makes every call",)
    help = f"keep the results in a dict beside `{name}`: first `if k in memo: return memo[k]`, and `memo[k] = ...` last"
    b.faults.add("PCB304", title, node, notes=notes, helps=(help,))
