"""The command `pcbatch`: `compile` shows a batched function at a stage, `check` its mistakes, `explain` a code.

The result goes to standard output and everything else, also what the user's file prints, to standard error. Exit
status: 0 fine, 1 an error in the user's program, 2 bad usage, 70 a bug in pcbatch.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import jax

import pcbatch
from pcbatch.api.batched import Batched
from pcbatch.api.dump import dump
from pcbatch.api.stages import STAGES
from pcbatch.cli.check import check
from pcbatch.cli.explain import explain
from pcbatch.cli.load import UserFailure, find, load, passes_through, user_traceback
from pcbatch.cli.parse_arguments import ArgType, BadUsage, is_wide, parse_args, split_target, types_of
from pcbatch.errors import PcbatchError, UsageError

Result = TypeVar("Result")
Types = dict[str, ArgType] | None

OK, USER_ERROR, BAD_USAGE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130

TYPED_STAGES = ("schedule", "jaxpr", "stablehlo")
FORMATS = ("text", "json", "dot")
IR_STAGES = ("cfg", "stack", "opt")
JSON_STAGES = (*IR_STAGES, "schedule")

_EXAMPLES = """\
examples:
  pcbatch compile fib.py                                   the optimised IR of every batched function
  pcbatch compile fib.py:fib --arg n=i32[]                 the same, of one function, with types
  pcbatch compile fib.py:fib --arg n=i32[] --stage jaxpr   what JAX is given
  pcbatch compile fib.py:fib --arg n=i32[] --stage schedule --lanes 1000
                                                           how its blocks would be run, and why
  pcbatch compile fib.py:fib --format dot | dot -Tsvg      the control flow as a picture
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:  # argparse has written its message.
        return stop.code if isinstance(stop.code, int) else OK
    try:
        return int(options.run(options))
    except BadUsage as error:
        return _complain(f"pcbatch: error: {error}", BAD_USAGE)
    except UserFailure as error:
        return _complain(str(error), USER_ERROR)
    except KeyboardInterrupt:
        return _complain("pcbatch: interrupted", INTERRUPTED)
    except Exception:
        return _complain(f"{traceback.format_exc()}\n{_BUG}", INTERNAL)


_BUG = "pcbatch: internal error: this is a bug in pcbatch; please report it with the lines above and the function."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pcbatch", description="Compile plain Python functions of one example into batched XLA programs."
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    raw = argparse.RawDescriptionHelpFormatter
    command = commands.add_parser(
        "compile",
        help="show a batched function at a stage of the compiler",
        description="Show the batched functions of a file at a stage of the compiler.",
        epilog=_EXAMPLES,
        formatter_class=raw,
    )
    _add_target(command)
    command.add_argument("--lanes", type=_positive, default=8, metavar="N", help="lanes in the batch (default: 8)")
    command.add_argument("--stage", choices=STAGES, default="opt", help="default: opt")
    command.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    command.set_defaults(run=_run_compile)
    _add_check(commands)
    command = commands.add_parser("explain", help="explain a code such as PCB301; without a code, list all of them")
    command.add_argument("code", nargs="?", metavar="CODE", help="PCB301, or 301")
    command.set_defaults(run=_run_explain)
    return parser


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", metavar="FILE.py[:FUNC]", help="the file, and one function (default: all of them)")
    command.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="NAME=TYPE",
        help="the type of an argument for one example: n=i32[], x=f32[3], pair=(f32[],i32[3]); repeat for each",
    )


def _add_check(commands: Any) -> None:
    text = (
        "Report all mistakes of the batched functions of a file, without running any of them. The file is imported, "
        "so its top level runs. Types come from --arg, or from annotations: numbers of Python (int, float, bool, "
        'complex), texts of types ("i32[3]"), and arrays with sizes by jaxtyping (Float[Array, "3 4"]).'
    )
    command = commands.add_parser("check", help="report the mistakes of batched functions", description=text)
    _add_target(command)
    command.set_defaults(run=_run_check)


def _version() -> str:
    try:
        version = importlib.metadata.version("jax")
    except importlib.metadata.PackageNotFoundError:  # JAX was put on the path by other means than an installer.
        version = "?"
    return f"pcbatch {pcbatch.__version__} (jax {version}, Python {platform.python_version()})"


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def _run_compile(options: argparse.Namespace) -> int:
    # What the user's file prints must not end up inside of the result.
    with contextlib.redirect_stdout(sys.stderr):
        text = _compile(options)
    _write(text)
    return OK


def _run_check(options: argparse.Namespace) -> int:
    with contextlib.redirect_stdout(sys.stderr):
        path, functions, types = _functions(options, needed=False)
        report = _shown_as_users(path, lambda: check(functions, types))
    _write(report.text)
    return _complain("\n\n".join(report.mistakes), USER_ERROR) if report.mistakes else OK


def _run_explain(options: argparse.Namespace) -> int:
    _write(explain(options.code))
    return OK


def _compile(options: argparse.Namespace) -> str:
    if options.format == "dot" and options.stage not in IR_STAGES:
        raise BadUsage(f"--format dot draws the stages {', '.join(IR_STAGES)}, not {options.stage}")
    path, batched, avals = _functions(options, needed=options.stage in TYPED_STAGES)
    texts = _dump_all([b for _, b in batched], avals, path, options)
    return _join([n for n, _ in batched], texts, options.format, single=split_target(options.target)[1] is not None)


def _functions(
    options: argparse.Namespace, needed: bool
) -> tuple[Path, list[tuple[str, Batched[..., Any]]], list[Types]]:
    """The file, the functions in it that are asked for, and the types of their arguments as far as they are known."""
    types = parse_args(options.arg)
    path, name = _file(options.target)
    batched = find(load(path), path, name)
    for arg in types:
        if not any(arg in b.fn.__code__.co_varnames[: _arity(b)] for _, b in batched):
            raise BadUsage(f"--arg {arg}=...: {', '.join(n for n, _ in batched)} has no argument {arg!r}")
    wide = bool(jax.config.values["jax_enable_x64"])  # after the user's file was imported, as files may switch it on
    _check_width(types, wide)
    return path, batched, [types_of(b.fn, types, b.options.static_argnames, needed, wide) for _, b in batched]


def _check_width(types: dict[str, ArgType], enabled: bool) -> None:
    """Refuse types of 64 bits outside of JAX's 64-bit mode, where it would silently compile for 32 bits."""
    if wide := [name for name, type_ in types.items() if is_wide(type_) and not enabled]:
        raise BadUsage(f"--arg {wide[0]}=... has 64 bits, JAX is in its 32-bit mode: set JAX_ENABLE_X64=1")


def _dump_all(
    functions: list[Batched[..., Any]], avals: list[dict[str, ArgType] | None], path: Path, options: argparse.Namespace
) -> list[str]:
    """Compile every function, so that the errors of all of them are reported (those of a shared callee once)."""
    texts: list[str] = []
    failures: dict[str, None] = {}
    for batched, types in zip(functions, avals, strict=True):
        try:
            texts.append(_dump(batched, types, path, options))
        except UserFailure as error:
            failures[str(error)] = None
    if failures:
        raise UserFailure("\n\n".join(failures))
    return texts


def _arity(batched: Batched[..., Any]) -> int:
    code: CodeType = batched.fn.__code__
    return code.co_argcount + code.co_kwonlyargcount


def _file(target: str) -> tuple[Path, str | None]:
    text, name = split_target(target)
    path = Path(text)
    if path.is_dir():
        raise BadUsage(f"{text} is a folder, not a file")
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise BadUsage(f"no such file: {text}") from None
    except OSError as error:
        raise BadUsage(f"cannot read {text}: {error.strerror}") from None
    return path, name


def _dump(batched: Batched[..., Any], types: dict[str, ArgType] | None, path: Path, options: argparse.Namespace) -> str:
    try:
        text = _shown_as_users(path, lambda: dump(batched, options.stage, types, options.lanes, options.format))
    except UsageError as error:
        raise BadUsage(f"{batched.fn.__name__} cannot be used like this\n{str(error).strip()}") from None
    except PcbatchError as error:
        raise UserFailure(str(error).strip()) from None
    if options.format == "json" and options.stage not in JSON_STAGES:  # These have a text form only.
        return json.dumps({"function": batched.fn.__name__, "stage": options.stage, "text": text}, indent=2)
    return text


def _shown_as_users(path: Path, act: Callable[[], Result]) -> Result:
    """Call `act`; an exception raised below a line of the user's file is shown as theirs.

    The compiler runs the user's expressions under tracing, so these may raise anything.
    """
    try:
        return act()
    except PcbatchError:
        raise
    except Exception as error:
        file = str(path.resolve())
        if passes_through(error, file):
            raise UserFailure(user_traceback(error, file)) from None
        raise


def _join(names: list[str], texts: list[str], format: str, single: bool) -> str:
    """Join the texts of several functions; for JSON into a list. The text of a `single` function stays as it is."""
    if single:
        return texts[0]
    if format == "json":
        return json.dumps([json.loads(text) for text in texts], indent=2)
    if format == "dot" or len(texts) == 1:
        return "\n".join(text.rstrip("\n") for text in texts)
    return "\n\n".join(f"// {name}\n{text.rstrip()}" for name, text in zip(names, texts, strict=True))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`head`, a pager) has seen enough. Python would complain once more when it flushes at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str, status: int) -> int:
    print(text, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
