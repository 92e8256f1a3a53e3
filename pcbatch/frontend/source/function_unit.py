"""The facts about one user function that every stage of the front end asks for, and the collection of its faults."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType

import gast

from pcbatch.decisions import Decisions
from pcbatch.diagnostics.diagnostic import Diagnostic, Label, Loc
from pcbatch.frontend.source.along import Along
from pcbatch.frontend.source.callee import BatchedTest, Statics, Target
from pcbatch.frontend.source.locate import Source, locate
from pcbatch.frontend.source.own_classes import own_classes
from pcbatch.frontend.source.rewrites.nested import lift, scope_of, to_lift
from pcbatch.frontend.source.scope import bindings, identifiers, parameters
from pcbatch.frontend.source.tree import FUNCTIONS, Node


class Faults:
    """The diagnostics of one function, in the order of its source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        title: str,
        place: Node | Loc,
        label: str = "",
        *,
        helps: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        cause: tuple[Node | Loc, str] | None = None,
    ) -> None:
        """Record a diagnostic about the code at `place`; `cause` is a second span that explains it, with a label."""
        secondary = () if cause is None else (Label(self._loc(cause[0]), cause[1]),)
        primary = Label(self._loc(place), label)
        self._found.append(Diagnostic(code, title, primary, secondary, notes, helps))

    def _loc(self, place: Node | Loc) -> Loc:
        return place if isinstance(place, Loc) else self._source.loc(place)

    def include(self, other: Faults) -> None:
        """Record what was found in another function that stands in this one."""
        self._found += other._found

    def inside(self, node: Node) -> bool:
        """Whether a diagnostic points to a part of this node."""
        whole = self._source.loc(node)
        start, end = (whole.line, whole.col), (whole.end_line, whole.end_col)
        spans = [diagnostic.primary.loc for diagnostic in self._found if diagnostic.primary is not None]
        return any(start <= (loc.line, loc.col) and (loc.end_line, loc.end_col) <= end for loc in spans)

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """All diagnostics in the order of their spans, each once."""
        unique = dict.fromkeys(self._found)
        return tuple(sorted(unique, key=lambda d: (d.primary.loc, d.code) if d.primary else ()))


@dataclass(frozen=True, slots=True)
class Unit:
    """The facts about one function to compile.

    `bound` are all local names with the nodes that bind them; `variables` are those with a value per lane; `nested` are
    the functions defined inside (`def` or `name = lambda`), which have no value at run time: each use is inlined in the
    primitive that uses it. `statics` are parameters that are never assigned and whose object is known: a function, a
    string, `self`. `names` are all identifiers that occur, so that names of temporaries can avoid them. `batched` gives
    the target of a call of a batched object, None for other objects.

    `lifted` are nested functions that are functions of the program, `definitions` the nodes of all functions that are
    defined in the body. `params` end with variables of functions around this one (see `source.nested`); `rebound` are
    those that this one assigns. `is_entry`: the function is the one that a batch runs; `generates`: it is a generator
    whose body stands in another function. `shape` gives the number of
    arguments in `*args` ("*") and the names in `**kwargs` ("**"), where they are known. `classes` are those of the user
    whose objects the function may meet, by name; `imports` has the objects of names that an `import` in the body binds,
    and of those that only the compiler gives to classes.
    """

    fn: FunctionType
    source: Source
    node: Node
    in_class: bool
    params: tuple[str, ...]
    bound: Mapping[str, tuple[Node, ...]]
    variables: frozenset[str]
    nested: Mapping[str, Node]
    names: frozenset[str]
    batched: BatchedTest
    statics: Statics
    along: Along
    lifted: Mapping[str, Target] = field(default_factory=dict)
    definitions: Mapping[str, Node] = field(default_factory=dict)
    rebound: tuple[str, ...] = ()
    is_entry: bool = False
    generates: bool = False
    shape: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, object] = field(default_factory=dict)
    classes: Mapping[str, type] = field(default_factory=dict)
    passed: dict[str, Target] = field(default_factory=dict, compare=False)  # functions given to others, as targets

    @property
    def decisions(self) -> Decisions:
        """The decisions about the user's source."""
        return self.along.decisions

    def want(self, code: CodeType | None, at: Node, why: str) -> bool:
        """Ask for a function to be compiled along, for a node; False if it cannot be, or is already."""
        return code is not None and self.along.want(code, self.source.loc(at), why)

    @property
    def header(self) -> Loc:
        """The span of `def name`, or of a whole lambda."""
        return self.source.header(self.node)

    @property
    def body(self) -> list[Node]:
        """The statements; a lambda has one, the return of its expression."""
        if isinstance(self.node, gast.Lambda):
            return [gast.copy_location(gast.Return(value=self.node.body), self.node.body)]
        statements: list[Node] = self.node.body
        return statements


def make_unit(
    fn: FunctionType,
    along: Along,
    statics: Statics,
    target: Target | None = None,
    written_out: Node = None,
) -> Unit:
    """Find the source of `fn` and classify its names; raises CompileError if there is no source.

    `target` is that of the calls of `fn`; it tells whether `fn` is a nested function. `written_out` is its tree once
    calls of `jax.vmap` are written out.
    """
    if target is not None and target.nested is not None:
        outer: Unit | None = target.nested.outer
        assert outer is not None
        source, node, in_class = outer.source, target.nested.node, outer.in_class
    else:
        outer, located = None, locate(fn)
        source, node, in_class = located.source, located.node, located.in_class
    node = node if written_out is None else written_out
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    further, rebound = scope_of(target, statics)
    own = parameters(node.args)
    params = (*own, *(name for name in further if name not in own))
    bound: dict[str, list[Node]] = {name: [] for name in params}
    for name, place in bindings(body):
        bound.setdefault(name, []).append(place)
    defined = {name: d for name, d in definitions(body) if len(bound[name]) == 1 and name not in params}
    # Functions that are defined around this one are known here as they are there.
    nested = (
        {}
        if outer is None
        else {name: d for name, d in outer.nested.items() if name not in bound and _pure(outer, name)}
    )
    lifted = {} if outer is None else {name: t for name, t in outer.lifted.items() if name not in bound}
    imports = {} if outer is None else {name: v for name, v in outer.imports.items() if name not in bound}
    imports |= imported(fn, {name: p[0] for name, p in bound.items() if len(p) == 1 and name not in params})
    classes = own_classes(fn, statics.values(), {*bound, *statics, *lifted, *imports})
    imports |= {name: cls for name, cls in classes.items() if " " in name}
    names = identifiers(node) | set(fn.__code__.co_freevars) | set(fn.__code__.co_names)
    unit = Unit(
        fn=fn,
        source=source,
        node=node,
        in_class=in_class,
        params=params,
        bound={name: tuple(places) for name, places in bound.items()},
        variables=frozenset(bound) - frozenset(defined) - frozenset(imports),
        nested={**nested, **defined},
        names=names if outer is None else names | outer.names,
        batched=_with_itself(fn, along),
        statics={name: value for name, value in statics.items() if not bound.get(name, [fn])},
        along=along,
        lifted=lifted,
        definitions=defined,
        rebound=rebound,
        shape={star: str(statics[star]) for star in ("*", "**") if star in statics},
        imports=imports,
        classes=classes,
    )
    inner = lift(unit, to_lift(unit, defined), defined)
    lifted.update(inner)  # the functions inside refer to this unit
    return replace(unit, nested={name: d for name, d in unit.nested.items() if _pure(unit, name)})


def _pure(unit: Unit, name: str) -> bool:
    """Whether a nested function may be inlined in a primitive that uses it: it assigns no variable around it."""
    return name not in unit.lifted or not unit.lifted[name].rebound


def _with_itself(fn: FunctionType, batched: BatchedTest) -> BatchedTest:
    def target(obj: object) -> Target | None:
        if isinstance(obj, Target):  # a nested function, which is no object
            return obj
        # `fn` may call itself by a name that is not its batched object.
        return Target(fn) if obj is fn and batched(obj) is None else batched(obj)

    return target


def definitions(body: list[Node]) -> list[tuple[str, Node]]:
    """The statements that define a function by `def` or `name = lambda`, nested scopes left out."""
    functions: list[tuple[str, Node]] = []
    for node in body:
        if isinstance(node, FUNCTIONS):
            functions.append((node.name, node))
        elif is_lambda_definition(node):
            functions.append((node.targets[0].id, node))
        elif isinstance(node, gast.stmt | gast.match_case) and not isinstance(node, gast.ClassDef):
            inner = gast.iter_child_nodes(node)
            functions += definitions([child for child in inner if isinstance(child, gast.stmt | gast.match_case)])
    return functions


def is_lambda_definition(node: Node) -> bool:
    """Whether a statement is `name = lambda ...: ...`."""
    return (
        isinstance(node, gast.Assign)
        and isinstance(node.value, gast.Lambda)
        and len(node.targets) == 1
        and isinstance(node.targets[0], gast.Name)
    )


def imported(fn: FunctionType, bound: Mapping[str, Node]) -> dict[str, object]:
    """The objects that `import` statements of a function give to names; those that fail are left out.

    `bound` are names that are bound once, each by the node that binds it.
    """
    found: dict[str, object] = {}
    for name, node in bound.items():
        if isinstance(node, gast.Import | gast.ImportFrom):
            try:
                found[name] = _value(fn, name, node)
            except Exception:
                continue
    return found


def _value(fn: FunctionType, name: str, node: Node) -> object:
    alias = next(a for a in node.names if (a.asname or a.name.split(".")[0]) == name)
    if isinstance(node, gast.Import):
        module = importlib.import_module(alias.name)
        return module if alias.asname else importlib.import_module(alias.name.split(".")[0])
    package = str(fn.__globals__.get("__package__") or "")
    module = importlib.import_module("." * (node.level or 0) + (node.module or ""), package or None)
    if hasattr(module, alias.name):
        return getattr(module, alias.name)
    return importlib.import_module(f"{module.__name__}.{alias.name}")
