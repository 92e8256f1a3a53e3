"""Each network says of each example of a batch what it says of that example alone, and so do its gradients."""

from __future__ import annotations

from pathlib import Path

import jax
import pytest

import examples.networks as networks
from examples.networks import check, run
from examples.networks.__main__ import main

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard")]

FORKING = ("tree_lstm", "mv_rnn", "drnn", "two_types")
SMALL = {"nested_rnn": 3, "berxit": 4, "drnn": 4}


def task(name: str, fork: str) -> run.Task:
    return run.Task(name, run.Settings(hidden=4, batch=3, most=SMALL.get(name, 5), fork=fork))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Without PyTorch, whose side is compared in a test of its own; and ranks may differ, as users have it."""
    monkeypatch.setattr(check, "has_torch", lambda: False)
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.share(4)
@pytest.mark.parametrize("name", networks.NAMES)
def test_predictions_in_lanes(name):
    assert task(name, "never").check_predictions() == "plain Python"


@pytest.mark.share(4, 2)
@pytest.mark.parametrize("name", FORKING)
def test_predictions_by_tasks(name):
    assert task(name, "always").check_predictions() == "plain Python"


@pytest.mark.share(11, 0)
@pytest.mark.parametrize("name", networks.NAMES)
def test_gradients(name):
    assert task(name, "never").check_gradient() == "plain Python"


@pytest.mark.parametrize("name", networks.NAMES)
def test_pytorch(name):
    pytest.importorskip("torch")
    from examples.networks import in_torch

    some = task(name, "never")
    expected = check.plain_predictions(some.network, some.weights, some.examples)
    check.compare(in_torch.predictions(name, in_torch.tensors(some.weights), some.examples), expected, name)
    slope = check.plain_gradient(some.network, some.weights, some.examples)
    check.compare(in_torch.gradient(name, some.weights, some.examples), slope, f"gradient of {name}")


@pytest.mark.full_only
def test_command(capsys):
    arguments = ["tree_lstm", "--hidden", "4", "--batch", "3", "--most", "5", "--train", "--repeats", "1"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tree_lstm: 3 examples, hidden 4")
    assert [line.strip().split(" as in ")[0] for line in lines[1:]] == ["predictions", "gradients"]


def test_differences_are_seen():
    with pytest.raises(AssertionError, match="example 1"):
        check.compare([1.0, 2.0], [1.0, 2.1], "example 1")
    with pytest.raises(AssertionError, match="2 arrays, not 1"):
        check.compare([1.0, 2.0], [1.0], "example 1")


def test_names_are_all_networks():
    folder = Path(networks.__file__).parent
    found = {file.stem for file in folder.glob("*.py") if "\ndef predict(" in file.read_text("utf-8")}
    assert set(networks.NAMES) == found
    table = (folder / "README.md").read_text("utf-8")
    assert all(f"[{name}]({name}.py)" in table for name in networks.NAMES)
