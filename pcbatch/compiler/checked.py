"""Programs that the verifier accepts: each pass is followed by it."""

from __future__ import annotations

from typing import TypeVar

from pcbatch.errors import InternalError
from pcbatch.ir.cfg import CfgProgram
from pcbatch.ir.printer import print_program
from pcbatch.ir.stack import StackProgram
from pcbatch.ir.verifier import verify

ProgramT = TypeVar("ProgramT", CfgProgram, StackProgram)


def checked(program: ProgramT, name: str, user_faults: tuple[str, ...] = ()) -> ProgramT:
    """Return a program that the verifier accepts; raises InternalError if pass `name` left it invalid.

    `user_faults` are rules that, so early, only the user's own program can break: diagnostics report those later.
    """
    faults = [fault for fault in verify(program) if fault.rule not in user_faults]
    if faults:
        raise InternalError(f"after {name}:\n" + "\n".join(map(str, faults)) + "\n" + print_program(program))
    return program
