"""`python -m examples.nuts`: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json

import pytest

from examples.nuts.__main__ import main

pytestmark = [pytest.mark.share(3), pytest.mark.long]

KEYS = {
    "useful_gradients",
    "gradient_batches",
    "longest_chain_gradients",
    "utilisation",
    "useful_gradients_per_second",
    "compile_seconds",
    "run_seconds",
    "max_rhat",
    "min_ess",
    "target",
    "chains",
    "draws",
    "seed",
    "device",
    "versions",
}
FIXED = ["--target", "eight-schools", "--chains", "4", "--step-size", "0.3", "--no-adapt", "--max-depth", "3"]


def test_json_of_a_fixed_run(tmp_path, capsys):
    out = tmp_path / "run.json"
    assert main([*FIXED, "--draws", "30", "--json", str(out)]) == 0
    numbers = json.loads(out.read_text())
    assert set(numbers) >= KEYS
    assert numbers["longest_chain_gradients"] <= numbers["gradient_batches"]
    assert numbers["utilisation"] == pytest.approx(numbers["useful_gradients"] / (4 * numbers["gradient_batches"]))
    printed = capsys.readouterr().out
    assert "log_tau" in printed and "utilisation" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "nothing"], "invalid choice"),
        (["--chains", "0"], "less than 1"),
        (["--chains", "many"], "invalid integer value"),
        (["--draws", "-1"], "less than 1"),
        (["--max-depth", "0"], "less than 1"),
        (["--step-size", "-0.1", "--no-adapt"], "not a positive number"),
        (["--step-size", "nan", "--no-adapt"], "not a positive number"),
        (["--no-adapt"], "needs --step-size"),
        (["--warmup", "0"], "no draws to adapt in"),
        (["--warmup", "19"], "no draws to adapt in"),
        (["--chains", "10", "--devices", "3"], "not a multiple"),
        (["--json", "/no/such/directory/run.json"], "no such directory"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
