"""What people may rely on, one line each, with the tests that show it.

    python -m tools.cases               runs those tests and prints a table; exit status 1 if a behaviour is not shown
    python -m tools.cases WORD ...      the behaviours whose text holds one of the words
    python -m tools.cases --list        the table, without running anything

A behaviour is shown if all of its tests pass and at least one was not skipped. The list is `tools/behaviours.py`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tools.behaviours import BEHAVIOURS, Behaviour

ROOT = Path(__file__).resolve().parent.parent


def main(arguments: Sequence[str]) -> int:
    """Run the tests of the behaviours that are asked for."""
    words = [argument.lower() for argument in arguments if not argument.startswith("-")]
    chosen = [b for b in BEHAVIOURS if not words or any(word in b.text.lower() for word in words)]
    if "--list" in arguments:
        print("\n".join(f"{b.group:14} {b.text}\n" + "\n".join(f"{'':15}{t}" for t in b.tests) for b in chosen))
        return 0
    outcomes = run(dict.fromkeys(test for behaviour in chosen for test in behaviour.tests))
    shown = {behaviour: verdict(behaviour, outcomes) for behaviour in chosen}
    print("\n".join(table(shown)))
    count = sum(found.startswith("shown") for found in shown.values())
    print(f"\n{count} of {len(chosen)} behaviours shown")
    return int(count < len(chosen))


def run(tests: Iterable[str]) -> Mapping[str, str]:
    """The outcome of every test that ran: "passed", "failed" or "skipped". Tests that do not exist are left out."""
    asked = list(tests)
    with tempfile.TemporaryDirectory() as folder:
        while asked:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-ra", "-o", "junit_family=xunit1", f"--junitxml={report}"]
            done = subprocess.run([*command, *asked], cwd=ROOT, check=False, capture_output=True, text=True)
            missing = [test for test in asked if f"not found: {ROOT / test}\n" in f"{done.stderr}{done.stdout}\n"]
            if not missing:
                print(done.stdout[-4000:] if done.returncode else done.stdout.splitlines()[-1], file=sys.stderr)
                return read(report)
            print(*(f"no such test: {test}" for test in missing), sep="\n", file=sys.stderr)
            asked = [test for test in asked if test not in missing]
    return {}


def read(report: Path) -> dict[str, str]:
    """Node id -> outcome, from pytest's XML."""
    outcomes: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("file", "")
        inside = case.get("classname", "").removeprefix(file.removesuffix(".py").replace("/", ".")).strip(".")
        node = "::".join(part for part in (file, inside.replace(".", "::"), case.get("name", "")) if part)
        kinds = {child.tag for child in case}
        outcomes[node] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
    return outcomes


def verdict(behaviour: Behaviour, outcomes: Mapping[str, str]) -> str:
    """`shown by N tests`, or what is wrong."""
    ran: list[str] = []
    for test in behaviour.tests:
        own = [
            outcome for node, outcome in outcomes.items() if node == test or node.startswith((f"{test}[", f"{test}::"))
        ]
        if not own:
            return f"not shown: {test} did not run"
        if "failed" in own:
            return f"not shown: {test} fails"
        ran += own
    passed = ran.count("passed")
    return f"shown by {passed} test{'' if passed == 1 else 's'}" if passed else "not shown: all its tests are skipped"


def table(shown: Mapping[Behaviour, str]) -> list[str]:
    """A line for every behaviour, by group."""
    width = max((len(behaviour.text) for behaviour in shown), default=0)
    lines, group = [], ""
    for behaviour, found in shown.items():
        if behaviour.group != group:
            group = behaviour.group
            lines += ["", group]
        lines.append(f"  {behaviour.text:{width}}  {found}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
