"""The facts about one user function that every later stage of the front end asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import FunctionType

import gast

from pcbatch.diagnostics.diagnostic import Loc
from pcbatch.frontend.source.callee import BatchedTest, Statics, Target
from pcbatch.frontend.source.decisions import NONE, Decisions
from pcbatch.frontend.source.locate import Source, locate
from pcbatch.frontend.source.scope import bindings, identifiers, parameters
from pcbatch.frontend.source.tree import FUNCTIONS, Node


@dataclass(frozen=True, slots=True)
class Unit:
    """The facts about one function to compile.

    `bound` are all local names with the nodes that bind them; `variables` are those with a value per lane; `nested` are
    the functions defined inside (`def` or `name = lambda`), which have no value at run time: each use is inlined in the
    primitive that uses it. `statics` are parameters that are never assigned and whose object is known: a function, a
    string, `self`. `names` are all identifiers that occur, so that names of temporaries can avoid them. `batched` gives
    the target of a call of a batched object, None for other objects. `decisions` are those of type inference so far.
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
    decisions: Decisions = NONE

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


def make_unit(fn: FunctionType, batched: BatchedTest, statics: Statics, decisions: Decisions = NONE) -> Unit:
    """Find the source of `fn` and classify its names; raises CompileError if there is no source."""
    located = locate(fn)
    node = located.node
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    params = parameters(node.args)
    bound: dict[str, list[Node]] = {name: [] for name in params}
    for name, place in bindings(body):
        bound.setdefault(name, []).append(place)
    nested = {name: d for name, d in definitions(body) if len(bound[name]) == 1 and name not in params}
    return Unit(
        fn=fn,
        source=located.source,
        node=node,
        in_class=located.in_class,
        params=params,
        bound={name: tuple(places) for name, places in bound.items()},
        variables=frozenset(bound) - frozenset(nested),
        nested=nested,
        names=identifiers(node) | set(fn.__code__.co_freevars) | set(fn.__code__.co_names),
        batched=lambda obj: (
            Target(fn) if obj is fn and batched(obj) is None else batched(obj)
        ),  # `fn` may call itself by a name that is not its batched object
        statics={name: value for name, value in statics.items() if not bound.get(name, [fn])},
        decisions=decisions,
    )


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
