"""The names that a function binds and those that it reads, by the rules of Python; and their renaming.

A name is local when it is bound anywhere in the function, even after its use or in code that never runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import gast

from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, Node, children, one_line, rebuild, with_fields


def parameters(args: Node) -> tuple[str, ...]:
    """The names of the parameters: positional, keyword-only, then `*args` and `**kwargs`."""
    stars = (a for a in (args.vararg, args.kwarg) if a is not None)
    return tuple(a.id for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *stars))


def bindings(nodes: Iterable[Node]) -> Iterator[tuple[str, Node]]:
    """Every node in a scope that binds a name, with the name; nested scopes are left out."""
    for node in nodes:
        yield from _bindings(node)


def _bindings(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Store | gast.Del):
        yield node.id, node
    elif isinstance(node, (*FUNCTIONS, gast.ClassDef)):
        yield node.name, node
        yield from bindings(outside(node))
    elif isinstance(node, gast.Lambda):
        yield from bindings(outside(node))
    elif isinstance(node, COMPREHENSIONS):
        # Only a walrus inside a comprehension binds in the scope around it.
        yield from ((w.target.id, w.target) for w in gast.walk(node) if isinstance(w, gast.NamedExpr))
    else:
        yield from _binding_strings(node)
        yield from bindings(children(node))


def _binding_strings(node: Node) -> Iterator[tuple[str, Node]]:
    """The bindings whose name is a plain string in the tree."""
    if isinstance(node, gast.Import | gast.ImportFrom):
        for alias in node.names:
            yield (alias.asname or alias.name.split(".")[0]), node
    elif isinstance(node, gast.MatchAs | gast.MatchStar) and node.name is not None:
        yield node.name, node
    elif isinstance(node, gast.MatchMapping) and node.rest is not None:
        yield node.rest, node


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


def free_names(node: Node) -> tuple[str, ...]:
    """The names that a node reads from the scope around it, in order of first appearance."""
    return tuple(dict.fromkeys(name.id for name in free_reads(node)))


def free_reads(node: Node) -> Iterator[Node]:
    """The name nodes that read from the scope around `node`."""
    if isinstance(node, gast.Name):
        if isinstance(node.ctx, gast.Load):
            yield node
    elif isinstance(node, (*FUNCTIONS, gast.Lambda)):
        yield from _function_reads(node)
    elif isinstance(node, COMPREHENSIONS):
        yield from _comprehension_reads(node)
    else:
        for child in children(node):
            yield from free_reads(child)


def _function_reads(node: Node) -> Iterator[Node]:
    for part in outside(node):
        yield from free_reads(part)
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    bound = {*parameters(node.args), *(name for name, _ in bindings(body))}
    for part in body:
        yield from (read for read in free_reads(part) if read.id not in bound)


def _comprehension_reads(node: Node) -> Iterator[Node]:
    first, *rest = node.generators
    yield from free_reads(first.iter)
    bound = {name for g in node.generators for name, _ in bindings([g.target])}
    parts = [first.target, *first.ifs]
    for generator in rest:
        parts += [generator.iter, generator.target, *generator.ifs]
    parts += [node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt]
    for part in parts:
        yield from (read for read in free_reads(part) if read.id not in bound)


def outside(node: Node) -> list[Node]:
    """The parts of a function or class definition that are evaluated in the scope around it."""
    parts = list(getattr(node, "decorator_list", []))
    if isinstance(node, gast.ClassDef):
        return [*parts, *node.bases, *(k.value for k in node.keywords)]
    parts += [d for d in (*node.args.defaults, *node.args.kw_defaults) if d is not None]
    args = node.args
    every = (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg)
    parts += [a.annotation for a in every if a is not None and a.annotation is not None]
    return [*parts, *([node.returns] if getattr(node, "returns", None) is not None else [])]


def identifiers(node: Node) -> frozenset[str]:
    """All identifiers in a tree, so that names of temporaries can avoid them."""
    names: set[str] = set()
    for part in gast.walk(node):
        names.update(name for name, _ in _binding_strings(part))
        if isinstance(part, gast.Name):
            names.add(part.id)
        elif isinstance(part, (*FUNCTIONS, gast.ClassDef)):
            names.add(part.name)
    return frozenset(names)


NAMED = (gast.MatchAs, gast.MatchStar, gast.ExceptHandler)


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """A tree in which variables have the names that `names` gives them, but for variables of inner scopes."""
    if not names:
        return node
    match node:
        case gast.Name(id=name) if name in names:
            new = gast.Name(id=names[name], ctx=node.ctx, annotation=node.annotation, type_comment=None)
            return gast.copy_location(new, node)
        case gast.Lambda() | gast.FunctionDef():
            return _function(node, names)
        case gast.ListComp() | gast.SetComp() | gast.GeneratorExp() | gast.DictComp():
            return _comprehension(node, names)
    new = rebuild(node, lambda child: renamed(child, names))
    for field in ("name", "rest"):
        name = getattr(new, field, None)
        if isinstance(new, (*NAMED, gast.MatchMapping)) and isinstance(name, str) and name in names:
            new = with_fields(new, **{field: names[name]})
    return new


def _function(node: Node, names: Mapping[str, str]) -> Node:
    body = [node.body] if isinstance(node, gast.Lambda) else node.body
    own = {*parameters(node.args), *(name for name, _ in bindings(body))}
    declared = {
        name for part in body for each in gast.walk(part) if isinstance(each, gast.Nonlocal) for name in each.names
    }
    inner = {old: new for old, new in names.items() if old not in own - declared}
    around = {id(part) for part in outside(node)}
    parts = {id(part) for part in body}

    def change(child: Node) -> Node:
        if id(child) in parts:
            return renamed(child, inner)
        if id(child) in around:
            return renamed(child, names)
        return rebuild(child, change) if child is node.args else child

    new = rebuild(node, change)
    if isinstance(node, FUNCTIONS) and node.name in names:
        new = with_fields(new, name=names[node.name])
        new.coded = getattr(node, "coded", node.name)  # the name that its code has
    return new


def _comprehension(node: Node, names: Mapping[str, str]) -> Node:
    assert isinstance(node, COMPREHENSIONS)
    bound = {name for generator in node.generators for name, _ in bindings([generator.target])}
    inner = {old: new for old, new in names.items() if old not in bound}
    first = node.generators[0]

    def change(child: Node) -> Node:
        if child is first:
            return rebuild(child, lambda part: renamed(part, names if part is first.iter else inner))
        return renamed(child, inner)

    return rebuild(node, change)


def catches(nodes: list[Node], counts: Callable[[Node], bool]) -> bool:
    """Whether statements catch exceptions by handlers that count, functions inside left out."""
    return any(
        any(map(counts, getattr(node, "handlers", ())))
        or (isinstance(node, gast.With) and "suppress" in one_line(node.items[0].context_expr))
        or catches(list(children(node)), counts)
        for node in nodes
        if not isinstance(node, (*FUNCTIONS, gast.Lambda))
    )


def hidden_inside(node: Node) -> frozenset[str]:
    """Return the names that a scope hides from what is inside it."""
    if isinstance(node, (*FUNCTIONS, gast.Lambda)):
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        return frozenset((*parameters(node.args), *(name for name, _ in bindings(body))))
    if isinstance(node, COMPREHENSIONS):
        return frozenset(name for generator in node.generators for name, _ in bindings([generator.target]))
    return frozenset()
