"""The functions of a program while it is built: their names, and the parameters that they change for their callers.

    def clear(xs): xs.clear()            ==>      func @clear(xs) -> (r, xs)

What they change is found by a fixpoint over calls. A parameter that is assigned before it is changed is another object
by then. Whether it is one in the end, on every path, the check of ownership finds out
(`lowering/diagnose/check_ownership.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType

from pcbatch.decisions import CodeKey
from pcbatch.frontend.source.callee import Statics, Target, same_statics
from pcbatch.frontend.source.helpers import Helpers, key_of
from pcbatch.ir.analysis.dataflow import forward
from pcbatch.ir.cfg import Call, Function, Op
from pcbatch.ir.names import LAMBDA
from pcbatch.ir.ops import Prim
from pcbatch.ir.roles import writes

GivenBack = Mapping[str, tuple[str, ...]]  # function -> parameters, in their order
Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Request:
    """A function to compile, with the arguments whose objects are known.

    `catching`: its caller catches what it raises; `fills`: it is an `__init__` whose object nobody has if it raises.
    """

    fn: FunctionType
    statics: Statics
    inline: bool
    target: Target
    catching: bool = False
    fills: bool = False


class Symbols:
    """The functions of the program by name, in order of discovery.

    A function has an entry for each set of objects that its calls give as arguments, since these may decide which
    functions it calls in turn. `raised` are classes that functions called in the body of a `try` raise, as far as they
    are known; `parts` are the parts of exceptions that handlers read, each with the classes that these catch.
    """

    def __init__(self, helpers: Helpers) -> None:
        self.helpers = helpers
        self.functions: dict[str, Request] = {}
        self.given_back: GivenBack = {}
        self.changing: set[CodeKey] = set()  # a nested function is another object in each round
        self.touching: set[CodeKey] = set()
        self.raised: tuple[type[BaseException], ...] = ()
        self.parts: dict[str, tuple[type[BaseException], ...]] = {}
        self.wanted: dict[str, dict[type[BaseException], None]] = {}
        self.raising: dict[type[BaseException], None] = {}  # what functions raise for a `try` around their calls

    def start_again(self, given_back: GivenBack) -> None:
        """Forget all functions; now it is known which parameters they give back, and which classes lanes may
        leave a `try` with."""
        self.given_back, self.raised = given_back, tuple(self.raising)
        self.parts = {part: tuple(classes) for part, classes in self.wanted.items()}
        self.changing |= {key_of(known.fn.__code__) for name, known in self.functions.items() if self.gives_back(name)}
        self.functions.clear()

    def want(self, part: str, classes: Iterable[type[BaseException]]) -> None:
        """Note that a handler of these classes reads a part of what it catches."""
        self.wanted.setdefault(part, {}).update(dict.fromkeys(classes))

    @property
    def lacks_parts(self) -> bool:
        """Whether handlers read parts that functions were built without."""
        return any(classes.keys() - set(self.parts.get(part, ())) for part, classes in self.wanted.items())

    def touch(self, functions: Sequence[Function]) -> bool:
        """Note which functions change objects in place; return whether a call was built without knowing that."""
        keys = {name: key_of(known.fn.__code__) for name, known in self.functions.items()}
        found = touching(functions, frozenset(name for name, key in keys.items() if key in self.touching))
        new = {keys[name] for name in found} - self.touching
        self.touching |= new
        return any(keys[callee] in new for function in functions for callee in callees(function))

    def gives_back(self, name: str) -> tuple[str, ...]:
        """Return the parameters that a function of the program changes in place and gives back to its callers."""
        return self.given_back.get(name, ())

    def may_change(self, target: Target) -> bool:
        """Return whether calls of a function may change their arguments."""
        return key_of(target.fn.__code__) in self.changing

    def may_touch(self, target: Target) -> bool:
        """Return whether calls of a function may change objects that are known elsewhere, under whatever name."""
        return key_of(target.fn.__code__) in self.touching

    def __call__(self, target: Target, statics: Statics, catching: bool = False, fills: bool = False) -> str:
        """Return the name of a function in the program, with a number if another function has its name.

        `catching` and `fills` are those of its request.

        The entry gives its caller nothing but its result, so one that changes its parameters is compiled once more for
        calls of itself.
        """
        for k, (name, known) in enumerate(self.functions.items()):
            if k == 0 and self.gives_back(name):
                continue
            same = known.fn is target.fn and (known.catching, known.fills) == (catching, fills)
            if same and same_statics(known.statics, statics, self.helpers):
                return name
        fn = target.fn
        name = self._unique(fn.__name__ if fn.__name__.isidentifier() else LAMBDA)
        self.functions[name] = Request(fn, statics, target.inline, target, catching, fills)
        self.helpers.names[name] = key_of(fn.__code__)
        return name

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.functions:
            candidate, number = f"{name}_{number}", number + 1
        return candidate


def parameters_given_back(functions: Sequence[Function], before: GivenBack) -> dict[str, tuple[str, ...]]:
    """Return the parameters that each function gives back, where its callees give back those in `before`."""
    params = {function.name: function.params for function in functions}
    found = {}
    for function in functions:
        names = _changed(function, params, before)
        ordered = tuple(name for name in function.params if name in names and name not in function.results[1:])
        kept = tuple(name for name in function.params if name in names and name in function.given_back)
        if ordered or kept:
            found[function.name] = tuple(name for name in function.params if name in (*ordered, *kept))
    return found


def _changed(function: Function, params: Mapping[str, tuple[str, ...]], before: GivenBack) -> Names:
    entry = function.blocks[0].label
    everything = frozenset(function.params)
    if not any(_touched(op, params, before) for block in function.blocks for op in block.ops):
        return frozenset()

    def after(label: str, objects: Names) -> Names:
        for op in function.block(label).ops:
            objects -= _assigned(op, params, before)
        return objects

    # The parameters that may still be the caller's objects.
    solution = forward(
        function.blocks,
        join=lambda label, values: frozenset[str]().union(*values, everything if label == entry else ()),
        transfer=after,
        start=frozenset[str](),
    )
    found: set[str] = set()
    for block in function.blocks:
        objects = solution.entering[block.label]
        for op in block.ops:
            found |= objects.intersection(_touched(op, params, before))
            objects -= _assigned(op, params, before)
    return frozenset(found)


def _touched(op: Op, params: Mapping[str, tuple[str, ...]], before: GivenBack) -> Iterable[str]:
    """The variables whose objects an operation changes in place."""
    match op:
        case Prim(expr=expr):
            return [expr.ins[change.position] for change in expr.effects.changes if change.sure]
        case Call(func=func, args=args):
            given = dict(zip(params.get(func, ()), args, strict=False))
            return [given[name] for name in before.get(func, ()) if name in given]
    return ()


def _assigned(op: Op, params: Mapping[str, tuple[str, ...]], before: GivenBack) -> Names:
    """The variables that hold another object after an operation."""
    same = set(_touched(op, params, before))
    if isinstance(op, Prim):
        same |= {*op.dsts} if op.expr.effects.same else set()
        same |= {op.expr.ins[change.position] for change in op.expr.effects.changes}
    return frozenset(writes(op)) - same


def touching(functions: Sequence[Function], before: Names) -> Names:
    """Return the functions that may change an object in place that they have not made; `before` is what is known.

    A list that a function has made of nothing, as `[]`, is its own: its changes show nowhere else.
    """
    found = before | {function.name for function in functions if any(_touches(function))}
    while True:
        calling = {
            function.name
            for function in functions
            if any(isinstance(op, Call) and op.func in found for block in function.blocks for op in block.ops)
        }
        if calling <= found:
            return found
        found |= calling


def _touches(function: Function) -> Iterator[bool]:
    """Yield for each change of an object in place whether the object may be known elsewhere."""
    ops = [op for block in function.blocks for op in block.ops]
    known = {name for op in ops for name in writes(op) if not _makes(op, name)} | {*function.params}
    for op in ops:
        if isinstance(op, Prim):
            yield from (
                change.depth > 1 or change.inner or op.expr.ins[change.position] in known
                for change in op.expr.effects.changes
                if change.sure
            )


def _makes(op: Op, name: str) -> bool:
    """Whether an operation makes the object of a variable of nothing, or changes it in place."""
    if not isinstance(op, Prim):
        return False
    return not op.expr.ins or any(op.expr.ins[change.position] == name for change in op.expr.effects.changes)


def callees(function: Function) -> tuple[str, ...]:
    """Return the functions that a function calls, each once."""
    calls = (op.func for block in function.blocks for op in block.ops if isinstance(op, Call))
    return tuple(dict.fromkeys(calls))
