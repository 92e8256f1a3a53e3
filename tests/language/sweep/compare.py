"""One verdict for each expression: a lane gives what Python gives, or the expression is refused with a code.

All expressions of a chunk stand in one function, a statement each. Type inference looks at each of them, whatever the
others do, and what it accepts is computed from its jaxpr.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

from pcbatch.data.checks import LIMIT
from pcbatch.data.host.host_forms import has_form, in_host_form
from pcbatch.diagnostics.diagnostic import Diagnostic
from pcbatch.errors import CompileError
from pcbatch.frontend import compile_functions
from pcbatch.frontend.source.helpers import Helpers
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.ops import Prim
from pcbatch.lowering.cfg_passes import split_live_ranges
from pcbatch.lowering.diagnose.primitive_errors import diagnose
from pcbatch.lowering.typing import infer
from pcbatch.lowering.typing.inferred import Inferred
from pcbatch.lowering.typing.jax_types import from_aval
from tests.language.sweep.calls import COMPLEX, EXAMPLES, NAMES, OPERANDS, WIDTHS
from tests.lowering.typed import abstract_of

_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`code` of a refusal; "same" for what is accepted and right; else `wrong` says how the two differ."""

    text: str
    code: str
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class Plain:
    """What Python gives for an expression on each example that it accepts, by the number of the example.

    `raised` are the names of the errors of arithmetic that it raises on others.
    """

    text: str
    values: Mapping[int, Any]
    raised: Mapping[int, str]


def in_plain_python(texts: Sequence[str]) -> Iterator[Plain]:
    """The expressions that Python accepts, each on operands of its own.

    What changes an array in place is computed with arrays of JAX, as `f.plain` does, which nothing changes.
    """
    for text in texts:
        if COMPLEX.search(text):
            continue
        values: dict[int, Any] = {}
        raised: dict[int, str] = {}
        for k, example in enumerate(EXAMPLES):
            operands = {v: value.copy() if isinstance(value, np.ndarray) else value for v, value in example.items()}
            with contextlib.suppress(Exception), _quietly():
                try:
                    found = eval(text, {**NAMES, **operands})
                except (ValueError, ArithmeticError) as error:
                    raised[k] = type(error).__name__
                    continue
                changed = any(not np.array_equal(operands[v], example[v]) for v in example)
                values[k] = eval(text, {**NAMES, **of_jax(example)}) if changed else found
        if values or (raised and text.startswith(("math.", "cmath."))):
            yield Plain(text, values, raised)


def of_jax(example: Mapping[str, Any]) -> dict[str, Any]:
    """An example with arrays of JAX in place of those of NumPy."""
    return {v: jnp.asarray(value) if isinstance(value, np.ndarray) else value for v, value in example.items()}


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore", divide="raise"),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def verdicts(plains: Sequence[Plain]) -> list[Verdict]:
    """What becomes of each expression in a batched function."""
    left = list(plains)
    found: list[Verdict] = []
    while left:
        fn = _function([plain.text for plain in left])
        try:
            program = split_live_ranges.run(compile_functions(fn, Helpers(lambda obj: None), {}))
        except CompileError as error:
            codes = {_line(d): d.code for d in error.diagnostics}
            assert codes, error
            found += [_refused(plain, codes[k]) for k, plain in enumerate(left) if k in codes]
            left = [plain for k, plain in enumerate(left) if k not in codes]
            continue
        except Exception as error:
            if len(left) == 1:
                return [*found, Verdict(left[0].text, "", f"the front end raises {_shown(error)}")]
            half = len(left) // 2
            return [*found, *verdicts(left[:half]), *verdicts(left[half:])]
        return [*found, *_typed(program, left)]
    return found


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _line(found: Diagnostic) -> int:
    assert found.primary is not None
    return found.primary.loc.line - 2


def _function(texts: Sequence[str]) -> Any:
    name = f"<sweep {next(_serial)}>"
    lines = [f"    r{k} = {text}\n" for k, text in enumerate(texts)]
    source = f"def f({', '.join(OPERANDS)}):\n{''.join(lines)}    return {next(iter(OPERANDS))}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space = dict(NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, name, "exec"), space)
    return space["f"]


ARGUMENTS = [{v: jnp.asarray(value) for v, value in example.items()} for example in EXAMPLES]


def _typed(program: CfgProgram, plains: Sequence[Plain]) -> list[Verdict]:
    types = {v: abstract_of(from_aval(jax.typeof(value))) for v, value in ARGUMENTS[0].items()}
    with _quietly():
        found = infer.run(program, types)
    return [_verdict(program, found, plain, k) for k, plain in enumerate(plains)]


def _refused(plain: Plain, code: str) -> Verdict:
    if re.fullmatch(r"PCB[1-3]\d\d", code):
        return Verdict(plain.text, code)
    return Verdict(plain.text, "", f"the code is {code}")


def _verdict(program: CfgProgram, found: Inferred, plain: Plain, line: int) -> Verdict:
    (function,) = program.functions
    ops = [
        ((function.name, block.label, i), op)
        for block in function.blocks
        for i, op in enumerate(block.ops)
        if op.loc is not None and op.loc.line == line + 2
    ]
    for key, op in ops:
        if key in found.errors:
            assert isinstance(op, Prim)
            try:
                read = {v: t for v in op.expr.ins if (t := found.types.get((function.name, v))) is not None}
                return _refused(plain, diagnose(op, read, found.errors[key], program.entry).code)
            except Exception as error:
                return Verdict(plain.text, "", f"the diagnosis raises {_shown(error)}")
    if len(ops) != 1 or ops[0][0] not in found.traced:
        return Verdict(plain.text, "several operations")
    ((key, op),) = ops
    assert isinstance(op, Prim)
    traced = found.traced[key]
    for k in (*plain.values, *(plain.raised if traced.checks else ())):
        try:
            with _quietly():
                outs = jex.jaxpr_as_fun(traced.closed)(*[ARGUMENTS[k][v] for v in op.expr.ins])
        except Exception as error:
            return Verdict(plain.text, "", f"the jaxpr raises {_shown(error)}")
        failed = next((check.exception for check in traced.checks if bool(outs[check.failed])), "")
        ends = failed == LIMIT and _no_lane_holds(plain.values.get(k))
        if failed != plain.raised.get(k, "") and not ends:
            return Verdict(plain.text, "", f"raises {failed or 'nothing'}, not {plain.raised.get(k, 'anything')}")
        if failed:
            continue
        want = plain.values[k]
        value = _python_form(traced.outs[0].rebuild(list(outs)))
        if not _alike(value, want, _tolerant(plain.text)):
            return Verdict(plain.text, "", f"{value!r:.200} in place of {want!r:.200}")
    return Verdict(plain.text, "same")


def _python_form(value: Any) -> Any:
    """A value with Python's own lists, dicts and sets in place of the containers of a lane."""

    def of_one_lane(container: Any) -> Any:
        return in_host_form(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], container)).tolist()[0]

    return jax.tree.map(lambda part: of_one_lane(part) if has_form(part) else part, value, is_leaf=has_form)


def _no_lane_holds(value: Any) -> bool:
    """Whether a number does not fit the types of a lane: large, or complex where they are real."""
    return isinstance(value, complex) or (isinstance(value, int | float) and abs(value) >= 2**31 - 1)


def _tolerant(text: str) -> bool:
    return any(re.search(rf"\b{name}\b", text) for name in WIDTHS)


def _alike(found: Any, want: Any, width: bool) -> bool:
    if isinstance(want, dict) and isinstance(found, dict):
        return list(found) == list(want) and all(_alike(found[key], want[key], width) for key in want)
    if isinstance(want, tuple | list) and isinstance(found, tuple | list):
        return len(found) == len(want) and all(_alike(a, b, width) for a, b in zip(found, want, strict=True))
    if isinstance(want, np.dtype | type) or isinstance(found, np.dtype | type):
        return _kind(found) == _kind(want)
    if width and found is not None and want is not None:
        return True
    try:
        a, b = np.asarray(found), np.asarray(want)
    except Exception:
        return False
    if "O" in (a.dtype.kind, b.dtype.kind) or "U" in (a.dtype.kind, b.dtype.kind):
        return type(found) is type(want) and bool(found == want)
    if a.shape != b.shape:
        return False
    return bool(np.allclose(a.astype(complex), b.astype(complex), rtol=1e-4, atol=1e-5, equal_nan=True))


def _kind(value: Any) -> str:
    try:
        return np.dtype(value).kind
    except TypeError:
        return repr(value)
