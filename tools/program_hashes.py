"""Prove that a change leaves every compiled program as it was, to the letter.

    python -m tools.program_hashes                  compare with the recorded hashes; exit status 1 if one differs
    python -m tools.program_hashes --write          record the hashes of this tree
    python -m tools.program_hashes --against REV    compare with the hashes that commit REV has recorded
    python -m tools.program_hashes --show NAME      print the two texts of a program that are hashed

Each named program of `tests.programs` has hashes of its optimised stack IR (`as_text("opt")`) and of the jaxpr of a run
(`as_text("jaxpr")`); every eighth of them also of its map as StableHLO, and each program of
`tests.programs.differentiable` of its gradient. JAX prints differently in each release, so the record names its
release: under another one only the stack IR is compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

import jax
import jax.numpy as jnp

os.environ["PCBATCH_ON_FAILURE"] = "ignore"  # callbacks about failed lanes are printed with their addresses

ROOT: Final = Path(__file__).parents[1]
RECORD: Final = "tests/programs/hashes.json"
LANES: Final = 4


class Record(TypedDict):
    """The content of the recorded file. `programs` maps a name to the hashes of its stages."""

    jax: str
    programs: dict[str, dict[str, str]]


def texts(name: str) -> dict[str, str]:
    """The texts of a program that are hashed, by stage. A name may begin with `gradient of` or `map of`."""
    from tests.programs import REGISTRY
    from tests.programs.differentiable import DIFFERENTIABLE

    kind, _, of = name.rpartition(" of ")
    program = {program.name: program for program in DIFFERENTIABLE}[of] if kind == "gradient" else REGISTRY[of]
    with program.mode():
        args = program.args(LANES)
        match kind:
            case "gradient":
                f = program.batched(max_tape=32, **({"max_depth": 8} if program.recursive else {}))
                return {"hlo": jax.jit(lambda *args: _gradient(f, args)).lower(*args).as_text()}
            case "map":
                f = program.batched(max_depth=8)
                return {"hlo": jax.jit(lambda *args: f.map(*args, lanes=2)).lower(*args).as_text()}
            case _:
                lowered = program.batched().lower(*args)
                return {stage: _stable(lowered.as_text(stage)) for stage in ("opt", "jaxpr")}


def names() -> list[str]:
    """All names that `texts` takes."""
    from tests.programs import REGISTRY
    from tests.programs.differentiable import DIFFERENTIABLE

    return [
        *REGISTRY,
        *(f"map of {name}" for name in list(REGISTRY)[::8]),
        *(f"gradient of {program.name}" for program in DIFFERENTIABLE),
    ]


def _gradient(f: Any, args: tuple[Any, ...]) -> Any:
    """The gradient of the sum of all floating results, in all floating arguments."""
    leaves, tree = jax.tree.flatten(args)
    floating = [k for k, leaf in enumerate(leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]

    def loss(parts: list[Any]) -> Any:
        given = list(leaves)
        for k, part in zip(floating, parts, strict=True):
            given[k] = part
        results = jax.tree.leaves(f(*jax.tree.unflatten(tree, given)))
        return sum(jnp.sum(x).astype(jnp.float32) for x in results if jnp.issubdtype(x.dtype, jnp.floating))

    return jax.grad(loss)([leaves[k] for k in floating])


def record(names: Sequence[str]) -> Record:
    """Compute the hashes of these programs."""
    programs: dict[str, dict[str, str]] = {}
    for name in names:
        programs[name] = {stage: hashlib.sha256(text.encode()).hexdigest()[:16] for stage, text in texts(name).items()}
    return {"jax": jax.__version__, "programs": programs}


def differences(old: Record, new: Record) -> list[str]:
    """One line for each program that is new, gone, or compiled differently."""
    same_jax = old["jax"] == new["jax"]
    before, after = old["programs"], new["programs"]
    return [
        *(f"{name}: not recorded" for name in after if name not in before),
        *(f"{name}: recorded, but there is no such program" for name in before if name not in after),
        *(
            f"{name}: {stage} differs"
            for name in after
            if name in before
            for stage in after[name]
            if before[name].get(stage) != after[name][stage] and (same_jax or stage == "opt")
        ),
    ]


def main(argv: Sequence[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description="Prove that compiled programs are as they were.")
    parser.add_argument("--write", action="store_true", help="record the hashes of this tree")
    parser.add_argument("--against", metavar="REV", help="compare with the record of this commit")
    parser.add_argument("--show", metavar="NAME", help="print the texts of one program")
    options = parser.parse_args(argv)
    if options.show:
        print("\n".join(f"== {stage}\n{text}" for stage, text in texts(options.show).items()))
        return 0
    new = record(names())
    if options.write:
        (ROOT / RECORD).write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    lines = differences(_recorded(options.against), new)
    print("\n".join([*lines, f"{len(new['programs'])} programs, {len(lines)} differences, jax {new['jax']}"]))
    return int(bool(lines))


def _recorded(revision: str | None) -> Record:
    if revision is None:
        text = (ROOT / RECORD).read_text(encoding="utf-8")
    else:
        command = ["git", "-C", str(ROOT), "show", f"{revision}:{RECORD}"]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    loaded: Mapping[str, object] = json.loads(text)
    return Record(jax=str(loaded["jax"]), programs=loaded["programs"])  # type: ignore[typeddict-item]


def _stable(text: str) -> str:
    """Remove addresses of objects, which differ from process to process."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
