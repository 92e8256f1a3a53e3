"""A failing program made small: statements and parts of expressions go, as long as it fails in the same way."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.programs.container_programs import PythonProgram

SECONDS = 240.0  # at most


def reduced(program: PythonProgram, fails: Callable[[PythonProgram], bool], seconds: float = SECONDS) -> PythonProgram:
    """The program with as little in it as still fails."""
    until = time.monotonic() + seconds
    again = True
    while again and time.monotonic() < until:
        again = False
        for smaller in _smaller(program):
            if time.monotonic() > until:
                break
            if fails(smaller):
                program, again = smaller, True
                break
    return program


def _smaller(program: PythonProgram) -> Iterator[PythonProgram]:
    """Programs with one thing less, those that lack most first."""
    places = list(_places(ast.parse(program.text)))
    for _, number in sorted(places, key=lambda place: -place[0]):
        for choice in range(5):
            tree = ast.parse(program.text)
            if not _change(tree, number, choice):
                continue
            try:
                text = ast.unparse(ast.fix_missing_locations(tree))
                compile(text, "<smaller>", "exec")
            except (SyntaxError, ValueError):
                continue
            if "def f0(" in text and len(text) < len(ast.unparse(ast.parse(program.text))):
                yield replace(program, text=text)


def _places(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, (ast.stmt, ast.expr)):
            yield len(ast.unparse(node)), number


def _change(tree: ast.Module, number: int, choice: int) -> bool:
    nodes = list(ast.walk(tree))
    node = nodes[number]
    if isinstance(node, ast.stmt):
        return _change_statement(nodes, node, choice)
    new = _simpler(node, choice) if isinstance(node, ast.expr) else None
    if new is None or isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return False
    for parent in nodes:
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, new)
                return True
            if isinstance(value, list) and any(part is node for part in value):
                value[[part is node for part in value].index(True)] = new
                return True
    return False


def _simpler(node: ast.expr, choice: int) -> ast.expr | None:
    parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    if choice < 3:
        return parts[choice] if choice < len(parts) else None
    return None if isinstance(node, (ast.Constant, ast.Name)) else ast.Constant(1)


def _change_statement(nodes: list[ast.AST], node: ast.stmt, choice: int) -> bool:
    blocks = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    blocks += [handler.body for handler in getattr(node, "handlers", ())]
    options: list[list[ast.stmt]] = [[], *(block for block in blocks if block)]
    if choice >= len(options) or (isinstance(node, ast.FunctionDef) and choice):
        return False
    for parent in nodes:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and any(statement is node for statement in block):
                place = [statement is node for statement in block].index(True)
                block[place : place + 1] = options[choice]
                if not block and name == "body":
                    block.append(ast.Pass())
                return True
    return False
