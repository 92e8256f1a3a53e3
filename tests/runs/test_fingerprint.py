"""Digests of programs in checkpoints: what changes them, and what does not; files that are damaged."""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pcbatch
from pcbatch.runs import fingerprint

NUMBERS = jnp.arange(1, 6, dtype=jnp.int32)


def program(step: Callable[[Any], Any]) -> Any:
    """A loop around a helper."""

    @pcbatch.batch
    def loop(n):
        x = 0.0
        while n > 0:
            x = step(x)
            n = n - 1
        return x

    return loop


def digest(step: Callable[[Any], Any]) -> str:
    """The digest of such a loop."""
    return fingerprint.of_program(program(step).lower(NUMBERS).stages.opt)


def captured(value: float) -> Callable[[Any], Any]:
    table = jnp.array([value, 2.0])
    return jax.jit(lambda x: x + table[0])


def on_host(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jax.pure_callback(function, jax.ShapeDtypeStruct((), jnp.float32), x, vmap_method="expand_dims")


def with_array(value: float) -> Callable[[Any], Any]:
    table = np.full(3, value, np.float32)
    return on_host(lambda x: np.asarray(x + table[1], np.float32))


def with_default(value: float) -> Callable[[Any], Any]:
    def host(x, by=value):
        return np.asarray(x + by, np.float32)

    return on_host(host)


def of_object(value: float) -> Callable[[Any], Any]:
    class Model:
        def __init__(self) -> None:
            self.by = value

        def __call__(self, x: Any) -> Any:
            return np.asarray(x + self.by, np.float32)

    return on_host(Model())


def of_partial(value: float) -> Callable[[Any], Any]:
    return on_host(functools.partial(lambda by, x: np.asarray(x + by, np.float32), value))


def of_method(value: float) -> Callable[[Any], Any]:
    class Model:
        names = {"a", "b", "c"}

        def __init__(self) -> None:
            self.table = {"by": [value]}

        def host(self, x: Any) -> Any:
            return np.asarray(x + self.table["by"][0], np.float32)

    return on_host(Model().host)


def nested(value: float) -> Callable[[Any], Any]:
    def inner(x: Any) -> Any:
        return x + value

    return on_host(lambda x: np.asarray(inner(x), np.float32))


def in_a_branch(value: float) -> Callable[[Any], Any]:
    table = jnp.array([value, 2.0])
    return lambda x: jax.lax.cond(x > 1, jax.jit(lambda x: x + table[0]), lambda x: x + 1, x)


def other_code(value: float) -> Callable[[Any], Any]:
    if value == 1.0:
        return on_host(lambda x: np.asarray(x + 1, np.float32))
    return on_host(lambda x: np.asarray(x - 1, np.float32))


MAKERS = (*(captured, with_array, with_default, of_object, of_partial, of_method, nested, in_a_branch, other_code),)


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_changes_a_digest(make: Callable[[float], Callable[[Any], Any]]) -> None:
    one = digest(make(1.0))
    assert digest(make(1.0)) == one
    assert digest(make(3.0)) != one


def test_a_run_goes_on_with_the_program_that_began_it_alone(tmp_path: Path) -> None:
    for make in (captured, with_array):
        path = tmp_path / make.__name__
        program(make(1.0)).start(NUMBERS).advance(2).save(path)
        with pytest.raises(pcbatch.StateError, match="another program"):
            program(make(3.0)).run(NUMBERS, save_to=path)
        assert program(make(1.0)).run(NUMBERS, save_to=path).value.tolist() == [1, 2, 3, 4, 5]


def test_a_log_on_the_host_may_grow(tmp_path: Path) -> None:
    log: list[float] = []

    @pcbatch.batch
    def loop(n):
        while n > 0:
            jax.debug.callback(lambda x: log.append(float(x)), n)
            n = n - 1
        return n

    try:
        machine = loop.start(NUMBERS).advance(2)
    except pcbatch.PcbatchError:
        pytest.skip("effects are refused")
    machine.save(tmp_path / "run")
    assert loop.run(NUMBERS, save_to=tmp_path / "run").value.tolist() == [0] * 5


ELSEWHERE = """
import sys
from tests.runs.test_fingerprint import MAKERS, digest
print([digest(make(1.0)) for make in MAKERS])
"""


@pytest.mark.share(3)
def test_digests_are_those_of_other_processes() -> None:
    root = Path(__file__).parents[2]
    found = set()
    for seed in ("1", "2"):
        env = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"}
        run = subprocess.run(
            [sys.executable, "-c", ELSEWHERE], env=env, cwd=root, capture_output=True, text=True, check=True
        )
        found.add(run.stdout)
    assert len(found) == 1


# Files that are damaged.


@pcbatch.batch
def countdown(n):
    """A loop of each lane's own length."""
    while n > 0:
        n = n - 1
    return n


def saved(path: Path) -> bytes:
    """The bytes of a checkpoint."""
    countdown.start(NUMBERS).advance(1).save(path)
    return path.read_bytes()


def with_header(path: Path, header: bytes) -> None:
    """Replace the header of a checkpoint."""
    with np.load(path) as archive:
        members = {name: archive[name] for name in archive.files}
    members["pcbatch"] = np.frombuffer(header, np.uint8)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **members)


def refuses(path: Path) -> None:
    """Each way to read the file says that it is none, and goes no further."""
    for use in (lambda: countdown.load(path), lambda: countdown.run(NUMBERS, save_to=path)):
        with pytest.raises(pcbatch.StateError, match="PCB44[23]"):
            use()


HEADERS = {
    "a list": b"[1, 2]",
    "nested deep": b"[" * 100_000 + b"]" * 100_000,
    "nested deep in objects": b'{"format":' * 50_000 + b"1" + b"}" * 50_000,
    "a number": b"7",
    "null": b"null",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "arrays that are a list": b'{"format": 1, "arrays": []}',
    "no arrays": b'{"format": 1}',
    "arrays without types": b'{"format": 1, "arrays": {"pc": 3}}',
    "a huge number": b'{"format": 1e999, "arrays": {}}',
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_that_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    saved(path)
    with_header(path, HEADERS[name])
    refuses(path)


def test_parts_of_a_header_of_another_type(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    saved(path)
    with np.load(path) as archive:
        header = json.loads(archive["pcbatch"].tobytes())
    rng = random.Random(0)
    for key in header:
        for value in (None, [], {}, "x", -1, 1e300, {"a": [1]}):
            if value == header[key] or (key in ("arguments", "capacity", "jax") and not rng.random() < 0.5):
                continue
            with_header(path, json.dumps(header | {key: value}).encode())
            for use in (lambda: countdown.load(path), lambda: countdown.run(NUMBERS, save_to=path)):
                try:
                    use()  # a value that is not read does no harm
                except pcbatch.StateError:
                    pass
        with_header(path, json.dumps({k: v for k, v in header.items() if k != key}).encode())
        for use in (lambda: countdown.load(path), lambda: countdown.run(NUMBERS, save_to=path)):
            try:
                use()
            except pcbatch.StateError:
                pass


def test_an_archive_that_says_it_is_encrypted(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    content = bytearray(saved(path))
    with zipfile.ZipFile(path) as archive:
        offsets = [info.header_offset for info in archive.infolist()]
    for offset in offsets:
        content[offset + 6] |= 1
    at = 0
    while (at := content.find(b"PK\1\2", at)) >= 0:
        content[at + 8] |= 1
        at += 4
    path.write_bytes(bytes(content))
    refuses(path)


@pytest.mark.share(2)
def test_damaged_bytes(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    whole = saved(path)
    rng = random.Random(1)
    for k in range(150):
        content = bytearray(whole)
        match k % 3:
            case 0:
                for _ in range(rng.randint(1, 4)):
                    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            case 1:
                content = content[: rng.randrange(len(content))]
            case 2:
                first, second = sorted(rng.randrange(len(content)) for _ in range(2))
                content[first:second] = rng.randbytes(rng.randrange(20))
        path.write_bytes(bytes(content))
        try:
            countdown.load(path)  # the bit of a time, say, does no harm
        except pcbatch.StateError:
            pass
