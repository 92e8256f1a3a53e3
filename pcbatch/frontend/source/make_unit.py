"""The unit of a function: its source is found, and its names are told apart."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TypeVar

import gast

from pcbatch.data.objects.boxes.classes import BoxValue
from pcbatch.data.objects.function_values import FunctionValue
from pcbatch.data.objects.tuples.classes import name_of_class
from pcbatch.frontend.source.callee import BatchedTest, Statics, Target
from pcbatch.frontend.source.function_unit import Unit
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.frontend.source.locate import Located, locate
from pcbatch.frontend.source.own_classes import own_classes
from pcbatch.frontend.source.rewrites.nested import lift, scope_of, to_lift
from pcbatch.frontend.source.scope import bindings, definitions, identifiers, parameters
from pcbatch.frontend.source.tree import Node
from pcbatch.ir.names import ITSELF

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a function binds by itself; the fields are those of `Unit`."""

    params: tuple[str, ...]
    bound: Mapping[str, tuple[Node, ...]]
    definitions: Mapping[str, Node]
    imports: Mapping[str, object]

    @classmethod
    def of(cls, fn: FunctionType, node: Node, captured: Iterable[str]) -> Scope:
        """Return the names in the tree of a function, which gets `captured` variables as further parameters."""
        own = parameters(node.args)
        params = (*own, *(name for name in captured if name not in own))
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        bound: dict[str, tuple[Node, ...]] = dict.fromkeys(params, ())
        for name, place in bindings(body):
            bound[name] = (*bound.get(name, ()), place)
        once = {name: places[0] for name, places in bound.items() if len(places) == 1 and name not in params}
        defined = {name: definition for name, definition in definitions(body) if name in once}
        return cls(params, bound, defined, _imported(fn, once))

    def unhidden(self, around: Mapping[str, ValueT]) -> dict[str, ValueT]:
        """Return what is known of names of the function around this one that this one does not bind itself."""
        return {name: value for name, value in around.items() if name not in self.bound}


def make_unit(
    fn: FunctionType, helpers: Helpers, statics: Statics, target: Target | None = None, written_out: Node = None
) -> Unit:
    """Find the source of `fn` and classify its names; raises CompileError if there is no source.

    `target` is that of the calls of `fn`; it tells whether `fn` is a nested function. `written_out` is its tree once
    calls of `jax.vmap` are written out.
    """
    outer: Unit | None = None if target is None or target.nested is None else target.nested.outer
    if outer is None:
        located = locate(fn)
    else:
        assert target is not None
        located = Located(outer.source, target.nested.node, outer.in_class)
    node = located.node if written_out is None else written_out
    captured, returned = scope_of(target, statics)
    scope = Scope.of(fn, node, captured)
    nested, lifted, imports = dict(scope.definitions), {}, {ITSELF: fn, **scope.imports}
    names = identifiers(node) | set(fn.__code__.co_freevars) | set(fn.__code__.co_names)
    if (
        outer is not None and target is not None
    ):  # functions that are defined around this one are known here as they are there
        nested = scope.unhidden({name: d for name, d in outer.nested.items() if _may_inline(outer, name)}) | nested
        lifted = scope.unhidden(outer.lifted)
        lifted |= {ITSELF: outer.lifted[target.nested.name]} if target.nested.name in outer.lifted else {}
        imports = scope.unhidden(outer.imports) | imports
        names |= outer.names
    known = [*statics.values(), *helpers.decisions.streams]
    classes = own_classes(fn, known, {*scope.bound, *statics, *lifted, *imports})
    classes |= {str(cls.pcbatch_place[0]): cls for cls in helpers.decisions.functions if cls is not FunctionValue}
    imports |= {name: cls for name, cls in classes.items() if " " in name}
    imports |= {name_of_class(cls): cls for cls in helpers.decisions.tuples.values()}
    imports |= {name_of_class(one.cls): one.cls for one in helpers.decisions.made if issubclass(one.cls, BoxValue)}
    unit = Unit(
        fn=fn,
        source=located.source,
        node=node,
        in_class=located.in_class,
        params=scope.params,
        bound=scope.bound,
        variables=frozenset(scope.bound) - frozenset(scope.definitions) - frozenset(imports),
        nested=nested,
        names=names,
        batched=_with_itself(fn, helpers),
        statics={name: value for name, value in statics.items() if not scope.bound.get(name, (fn,))},
        helpers=helpers,
        lifted=lifted,
        definitions=scope.definitions,
        returned=returned,
        shape={star: str(statics[star]) for star in ("*", "**") if star in statics},
        imports=imports,
        classes=classes,
    )
    lifted.update(lift(unit, to_lift(unit, scope.definitions), scope.definitions))  # these refer to this unit
    return replace(unit, nested={name: d for name, d in unit.nested.items() if _may_inline(unit, name)})


def _may_inline(unit: Unit, name: str) -> bool:
    """Whether a nested function may be inlined in a primitive that uses it: it assigns no variable around it."""
    return name not in unit.lifted or not unit.lifted[name].returned


def _with_itself(fn: FunctionType, batched: BatchedTest) -> BatchedTest:
    def target(obj: object) -> Target | None:
        if isinstance(obj, Target):  # a nested function, which is no object; a generator is written out
            return None if inspect.isgeneratorfunction(obj.fn) else obj
        # `fn` may call itself by a name that is not its batched object.
        return Target(fn) if obj is fn and batched(obj) is None else batched(obj)

    return target


def _imported(fn: FunctionType, bound: Mapping[str, Node]) -> dict[str, object]:
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
