"""The check that refuses unsupported syntax, all of it at once, before anything is built.

Later stages see only constructs that the tables in `rules` name; any other construct is refused, never compiled
wrongly. Nested functions, lambdas and comprehensions stay plain Python inside a primitive, so that little is refused
there: only constructs that would leave the primitive or need a lane of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import gast

from pcbatch.diagnostics.short_repr import short
from pcbatch.frontend.build.messages import is_print
from pcbatch.frontend.source.bind_call import bind, starred
from pcbatch.frontend.source.callee import Target
from pcbatch.frontend.source.changed_in_loops import reads_what_changes, taken_in_turn
from pcbatch.frontend.source.function_unit import Faults, Unit
from pcbatch.frontend.source.generators import is_generator
from pcbatch.frontend.source.resolve import MISSING, builtin_name, callee, is_batch_decorator, resolve
from pcbatch.frontend.source.rewrites.growing_lists import reads_what_it_changes
from pcbatch.frontend.source.rewrites.nested import ask, ask_called, function_of, hidden_variables, nonlocals
from pcbatch.frontend.source.rewrites.spread import spread
from pcbatch.frontend.source.scope import bindings, outside, parameters
from pcbatch.frontend.source.streams import becomes_list, expands, takes_list
from pcbatch.frontend.source.tree import COMPREHENSIONS, FUNCTIONS, SUPPORT, Node, children, one_line
from pcbatch.frontend.subset import check_statements as statements
from pcbatch.frontend.subset.rules import (
    EXPRESSIONS,
    FORBIDDEN_BUILTINS,
    KNOWN_EXPRESSIONS,
    KNOWN_STATEMENTS,
    NESTED,
    STATEMENTS,
)
from pcbatch.frontend.subset.stale_caches import check_caches
from pcbatch.frontend.subset.unused_results import value_helps


@dataclass(frozen=True, slots=True)
class Where:
    """The scope in which a node stands.

    `scope` is "" in the user's function itself, else the innermost nested scope in words; `function`: whether the node
    is in a nested function; `hidden`: the names that nested scopes bind.
    """

    scope: str = ""
    function: bool = False
    hidden: frozenset[str] = frozenset()
    definition: Node = None  # the outermost nested function around the node, of those that can be compiled along


def check(unit: Unit, faults: Faults) -> None:
    """Record in `faults` all unsupported constructs of a function."""
    Checker(unit, faults).run()


class Checker:
    """A walk through one function; every method records faults and continues."""

    def __init__(self, unit: Unit, faults: Faults) -> None:
        self.unit = unit
        self.faults = faults
        loops = (part for node in unit.body for part in gast.walk(node) if isinstance(part, gast.For | gast.While))
        self.in_handlers = statements.in_handlers(unit.body)
        self.looped = {id(part) for loop in loops for part in gast.walk(loop)}  # the nodes inside loops
        self.written_out: set[int] = set()  # comprehensions, lambdas and functions that become loops of the lane
        parts = (part for node in unit.body for part in gast.walk(node))
        self.alone = {id(part.value) for part in parts if isinstance(part, gast.Expr)}  # statements of their own
        self.given_to: Node = None  # the function that gets the current node as an argument

    def run(self) -> None:
        """Check the parameters, the names and the body."""
        node = self.unit.node
        target = self.unit.lifted.get(getattr(node, "name", ""))
        if target is not None and target.nested.node is node and (hidden := hidden_variables(target)):
            self._hidden(hidden)
        if isinstance(node, gast.AsyncFunctionDef):
            rule = STATEMENTS["AsyncFunctionDef"]
            self.faults.add(rule.code, rule.title, self.unit.header, rule.label, helps=(rule.help,))
        for part in gast.walk(node):
            if isinstance(part, gast.Name) and part.id.startswith(SUPPORT) and not hasattr(part, "made"):
                self.faults.add("PCB210", f"the name `{part.id}` is reserved", part, helps=("choose another name",))
        statements.check_names(self.unit, self.faults)
        check_caches(self.unit, self.faults)
        for statement in self.unit.body:
            self.visit(statement, Where())

    def visit(self, node: Node, where: Where) -> None:
        """Check a node and all nodes below it."""
        kind = type(node).__name__
        self._table(node, kind, where)
        self._private(node)
        if isinstance(node, gast.For) and not where.scope:
            statements.check_iterable(self.unit, self.faults, node.iter, self.written_out)
            if reads_what_changes(self.unit, node) and not taken_in_turn(self.unit, node.iter):
                title = "a generator in this iterable reads what the loop changes"
                helps = ("make a list of it before the loop, if it is to read the values from before",)
                self.faults.add("PCB121", title, node.iter, "Python makes each element in its turn", helps=helps)
        if isinstance(node, gast.Call) and (stream := reads_what_it_changes(self.unit, node)) is not None:
            title = f"a generator in this call of `{node.func.attr}` reads what the call changes"
            helps = ("write a loop that stores each element: `for k in ...: s.add(k)`, or `d[k] = v`",)
            self.faults.add("PCB121", title, stream, "Python makes each element in its turn", helps=helps)
        if isinstance(node, gast.For | gast.comprehension):
            self._choice(node.iter, where, (tuple, list))  # of a dict, a loop takes the keys
        if kind == "ClassDef" and not where.scope:
            return
        if isinstance(node, gast.stmt) and not where.scope:
            statements.check_statement(self.unit, self.faults, node, self.in_handlers)
        if isinstance(node, FUNCTIONS) or kind == "Lambda":
            self._function(node, where)
        elif isinstance(node, COMPREHENSIONS):
            if not where.scope and expands(self.unit, node):
                statements.write_out(self.unit, node, self.written_out)
            bound = frozenset(n for g in node.generators for n, _ in bindings([g.target]))
            scope = "" if id(node) in self.written_out else where.scope or "a comprehension"
            self._below(node, replace(where, scope=scope, hidden=where.hidden | bound))
        elif kind == "Call":
            self._call(node, where)
        elif kind in ("Name", "Attribute"):
            self._value(node, where)
        else:
            self._below(node, where)

    def _below(self, node: Node, where: Where) -> None:
        for child in children(node):
            self.visit(child, where)

    def _table(self, node: Node, kind: str, where: Where) -> None:
        if kind == "Nonlocal" and not where.scope and set(node.names) <= set(self.unit.returned):
            return
        if kind in ("Import", "ImportFrom") and not where.scope:
            names = [name for name, _ in bindings([node])]
            if all(name in self.unit.imports for name in names):
                return
        if kind == "Global" and not where.scope and not self.unit.bound.keys() & set(node.names):
            return  # it only says that the names are read of the module
        if kind in ("Yield", "YieldFrom") and not where.scope and self.unit.generates and id(node) in self.alone:
            return
        rule = STATEMENTS.get(kind) or EXPRESSIONS.get(kind)
        if rule is not None and (not where.function or kind in NESTED):
            self.faults.add(rule.code, rule.title, node, rule.label, helps=(rule.help,))
        elif rule is None and not where.function:
            known = not isinstance(node, gast.stmt | gast.expr) or kind in KNOWN_STATEMENTS | KNOWN_EXPRESSIONS
            if not known:
                help = "write it without, or outside of the batched function"
                self.faults.add("PCB199", f"this syntax ({kind}) is not supported", node, helps=(help,))
        if kind == "NamedExpr" and where.scope and not where.function:
            title = f"`:=` inside {where.scope} is not supported"
            helps = ("assign in a statement of its own before",)
            self.faults.add("PCB114", title, node, "assigns a variable of the function around it", helps=helps)
        if isinstance(node, gast.comprehension) and node.is_async:
            rule = STATEMENTS["AsyncFor"]
            self.faults.add(rule.code, rule.title, node.target, rule.label, helps=(rule.help,))

    def _hidden(self, names: tuple[str, ...]) -> None:
        own, name = self.unit.fn.__name__, names[0]
        title = f"`{own}` has a variable `{name}` of its own, and a function that it calls reads another"
        help = f"rename the variable `{name}` of `{own}`"
        self.faults.add("PCB203", title, self.unit.header, "both are passed under this name", helps=(help,))

    def _lifted(self, node: Node) -> bool:
        """Whether a nested function is a function of the program, which is checked by itself."""
        return any(target.nested.node is node for target in self.unit.lifted.values())

    def _function(self, node: Node, where: Where) -> None:
        if self._lifted(node):
            return
        if id(node) in self.written_out and isinstance(node, gast.Lambda):
            self.visit(node.body, replace(where, hidden=where.hidden | frozenset(parameters(node.args))))
            return
        definition = where.definition
        if definition is None and is_generator(node) and any(d is node for d in self.unit.definitions.values()):
            return  # checked where it is written out
        if definition is None and any(function_of(d) is node for d in self.unit.definitions.values()):
            definition = node
        if nonlocals(node):
            ask(self.unit, definition, node, "it assigns a variable of the function around it")
        body = [node.body] if isinstance(node, gast.Lambda) else node.body
        bound = frozenset((*parameters(node.args), *(name for name, _ in bindings(body))))
        for decorator in getattr(node, "decorator_list", []):
            if is_batch_decorator(self.unit, decorator):
                self._batched_inside(decorator)
        for part in outside(node):
            self.visit(part, replace(where, scope="a default or decorator of a nested function"))
        for part in body:
            self.visit(part, Where("a nested function", True, where.hidden | bound, definition))

    def _call(self, node: Node, where: Where) -> None:
        target = callee(self.unit, node, where.hidden)
        if not where.scope and target is None:
            self._consumed(node)
        if not where.scope and id(node) not in self.alone and is_print(self.unit, node):
            title, label = "`print` has no value", "only a statement of its own can print"
            self.faults.add("PCB119", title, node, label, helps=("write it on a line of its own",))
        if target is None and is_batch_decorator(self.unit, node.func):
            self._batched_inside(node)
        elif target is None:
            forbidden = builtin_name(self.unit, node.func, frozenset(FORBIDDEN_BUILTINS))
            if forbidden is not None and not where.hidden & {forbidden}:
                title, help = f"`{forbidden}()` is not supported", FORBIDDEN_BUILTINS[forbidden]
                if forbidden in ("eval", "exec") and node.args and isinstance(node.args[0], gast.Constant):
                    help = f"write `{node.args[0].value}` itself"
                self.faults.add("PCB120", title, node, "it goes past the compiler to Python's frame", helps=(help,))
            if isinstance(node.func, gast.Subscript) and not isinstance(node.func.slice, gast.Constant):
                self._choice(node.func.value, where, (tuple, list, dict))
            self.visit(node.func, where)
        elif where.scope and not target.inline and (not target.helper or target.returned):
            ask(self.unit, where.definition, node, f"it calls `{target.fn.__name__}`")
            self.faults.add(
                "PCB206",
                f"the batched function `{target.fn.__name__}` is called inside {where.scope}",
                node,
                "each lane must make this call by itself",
                helps=("call it in a statement of the batched function, in a `for` loop if need be",),
            )
        elif not where.scope:
            whole = starred(spread(self.unit, node), target, lambda value, _k, _count: value, self.unit.unpacked)
            bind(self.faults, whole, target)
        for child in (*node.args, *(k.value for k in node.keywords)):
            if id(child) in self.written_out and not isinstance(child, (*COMPREHENSIONS, gast.Lambda, gast.Call)):
                continue  # a function that the loop calls
            if target is None or self._batched(child, where) is None:  # a function may be an argument
                self.given_to = node.func
                self.visit(child, where)
                self.given_to = None

    def _consumed(self, node: Node) -> None:
        """Note what becomes a loop because a call takes all elements of it."""
        if expands(self.unit, node):
            statements.write_out(self.unit, node, self.written_out)
        elif takes_list(self.unit, node):
            for arg in node.args:
                if becomes_list(self.unit, arg):
                    statements.write_out(self.unit, arg, self.written_out)

    def _batched(self, node: Node, where: Where) -> Target | None:
        value = resolve(self.unit, node, where.hidden)
        return None if value is MISSING else self.unit.batched(value)

    def _batched_inside(self, node: Node) -> None:
        title = "a batched function cannot be made inside another one"
        self.faults.add("PCB208", title, node, helps=("define it outside and pass what it needs as arguments",))

    def _value(self, node: Node, where: Where) -> None:
        target = self._batched(node, where)
        defined = isinstance(node.ctx, gast.Store)  # by `name = lambda ...`
        if target is not None and not target.inline and not defined and (not target.helper or target.returned):
            name = target.fn.__name__
            title = f"the batched function `{name}` is used as a value"
            why = "it gets a function that is compiled along"
            if self.given_to is not None and ask_called(self.unit, self.given_to, node, why):
                return
            if target.nested is not None:
                title = f"`{name}` changes variables of the function around it, and is used as a value"
                help = f"have `{name}` return what it changes, and assign that where it is called"
                self.faults.add("PCB207", title, node, "only calls of it are supported", helps=(help,))
                return
            helps = value_helps(self.unit, target, None if self.given_to is None else resolve(self.unit, self.given_to))
            self.faults.add("PCB207", title, node, "only calls of it are supported", helps=helps)
        elif isinstance(node, gast.Attribute):
            if self._batched(node.value, where) is None:
                self.visit(node.value, where)

    def _choice(self, node: Node, where: Where, kinds: tuple[type, ...]) -> None:
        """Refuse a table of batched functions whose index is not known while compiling."""
        functions = resolve(self.unit, node, where.hidden)
        if type(functions) not in kinds:  # looking at the items of another type may run code of the user
            return
        items = functions.values() if isinstance(functions, dict) else functions
        targets = [self.unit.batched(item) for item in items]
        if targets and all(target is not None and not target.inline and not target.helper for target in targets):
            title, table = "which batched function is called here is not known before the lanes run", one_line(node)
            key = short(next(iter(functions))) if isinstance(functions, dict) else "0"
            helps = (f"write the calls out, each by an index that is known: `{table}[{key}](x)`",)
            self.faults.add("PCB207", title, node, "only calls of the functions in it are supported", helps=helps)

    def _private(self, node: Node) -> None:
        name = getattr(node, "id", getattr(node, "attr", None))
        if self.unit.in_class and isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
            title = f"the class-private name `{name}` is not supported"
            self.faults.add("PCB122", title, node, helps=("use one leading underscore",))
