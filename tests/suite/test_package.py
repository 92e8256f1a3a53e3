"""The shape of the package: what is public, which way imports go, how long files may be."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import pcbatch

PACKAGE = Path(pcbatch.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 400

PUBLIC = {
    "gather",
    "serving",
    "BatchRuntimeError",
    "Batched",
    "CompileError",
    "Dense",
    "Few",
    "Interrupted",
    "Kernel",
    "Learned",
    "Made",
    "NonFiniteError",
    "Packed",
    "PcbatchError",
    "Plan",
    "Policy",
    "Ragged",
    "Result",
    "Run",
    "StateError",
    "Status",
    "Strips",
    "TooLargeError",
    "UsageError",
    "batch",
    "inline",
    "learn_schedule",
    "pack",
    "primitive",
    "ragged",
    "unroll",
    "use_cpu_devices",
}

# What each folder (or module at the top) may import of the package, besides itself: the pipeline, read upward.
BASE = {"contexts", "decisions", "diagnostics", "errors", "jax_settings", "options", "plan"}
CORE = {"ir", "data", "frontend", "lowering", "runtime", "transforms", *BASE}
ALLOWED = {
    "diagnostics": set(),
    "decisions": {"diagnostics"},
    "errors": {"decisions", "diagnostics"},
    "options": {"diagnostics", "errors", "plan"},
    "plan": {"diagnostics", "errors"},
    "contexts": set(),
    "jax_settings": set(),
    "data": BASE,
    "ir": {"diagnostics", "errors"},
    "frontend": {"data", "ir", *BASE},
    "lowering": {"data", "ir", *BASE},
    "runtime": {"data", "lowering", "ir", *BASE},
    "transforms": {"runtime", "data", "lowering", "ir", *BASE},
    "call": {"runtime", "data", "lowering", "ir", *BASE},
    "compiler": {"call", *CORE},
    "sizing": {"call", "contexts", "data", "frontend", "lowering"},
    "report": {"call", "compiler", *CORE},
    "runs": {"call", "compiler", *CORE},
    "learning": {"call", "compiler", *CORE},
    "tuning": {"call", "compiler", *CORE},
    "ask": {"call", "compiler", "runs", "runtime", "data", "lowering", *BASE},
    "api": {"ask", "call", "compiler", "report", "sizing", "runs", "learning", "tuning", *CORE},
    "cli": {"api", "compiler", "__init__", *CORE},
    "mcmc": {"api", "call", "runs", *CORE},
    "__main__": {"cli"},
    "__init__": {"api", "ask", "call", "data", "runs", "runtime", *BASE},
}

# Third-party modules with one place only, or with places where they must not be.
ONLY_IN = {"gast": {"frontend"}, "astunparse": {"frontend"}, "matplotlib": {"report"}}
NO_JAX = {*BASE, "ir"} - {"jax_settings"}
NOT_IN = {"jax": NO_JAX, "jaxlib": NO_JAX}


def part(path: Path) -> str:
    """The part of the package that a file belongs to: a folder, or a module at the top."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Full names of all modules that a file imports, wherever in the file."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ["pcbatch", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_public_names() -> None:
    assert set(pcbatch.__all__) == PUBLIC
    assert len(pcbatch.__all__) == len(PUBLIC)
    for name in PUBLIC:
        assert getattr(pcbatch, name) is not None


def test_nothing_else_looks_public() -> None:
    visible = {name for name, value in vars(pcbatch).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert visible == PUBLIC


def test_dir_shows_public_names_only() -> None:
    assert {name for name in dir(pcbatch) if not name.startswith("__")} == PUBLIC
    assert importlib.import_module("pcbatch.cli.main") is pcbatch.cli.main  # type: ignore[attr-defined]


def test_public_objects_have_docstrings() -> None:
    undocumented = [name for name in PUBLIC if not getattr(pcbatch, name).__doc__]
    assert undocumented == []


def test_imports_go_one_way() -> None:
    for path in FILES:
        here = part(path)
        used = {name.split(".")[1] for name in imports(path) if name.startswith("pcbatch.")}
        assert used - {here} <= ALLOWED[here], path


def test_third_party_imports_stay_in_their_place() -> None:
    for path in FILES:
        for module in {name.partition(".")[0] for name in imports(path)}:
            assert part(path) in ONLY_IN.get(module, {part(path)}), (path, module)
            assert part(path) not in NOT_IN.get(module, set()), (path, module)


def test_only_the_public_api_of_jax() -> None:
    for path in FILES:
        assert not [name for name in imports(path) if name.startswith("jax._")], path
        assert "jax._src" not in path.read_text(encoding="utf-8"), path


def test_files_are_short_and_say_what_they_are() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= LONGEST_FILE, path
        assert not text or ast.get_docstring(ast.parse(text)), path


def test_the_architecture_names_every_folder() -> None:
    pages = [PACKAGE.parent / "ARCHITECTURE.md", *PACKAGE.rglob("README.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in FILES} - {"."}
    assert [folder for folder in sorted(folders) if f"{folder}/`" not in text] == []


def test_every_module_can_be_imported() -> None:
    for path in FILES:
        parts = ["pcbatch", *path.relative_to(PACKAGE).with_suffix("").parts]
        importlib.import_module(".".join(p for p in parts if p != "__init__"))


def test_importing_does_not_start_a_backend() -> None:
    """Importing pcbatch must not start a JAX backend: users configure devices after the import."""
    code = (
        "import jax, pcbatch, pcbatch.cli.main, pcbatch.compiler.pipeline\n"
        "jax.config.update('jax_num_cpu_devices', 3)\n"
        "assert jax.device_count() == 3\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdin=subprocess.DEVNULL)


def test_metadata() -> None:
    try:
        metadata = importlib.metadata.metadata("pcbatch")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("pcbatch is not installed")
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == pcbatch.__version__
    assert (PACKAGE / "py.typed").exists()
