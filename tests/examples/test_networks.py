"""Each network says of each example of a batch what it says of that example alone, and so do its gradients."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

import examples.networks as networks
import pcbatch
from benchmarks import networks as benchmark
from benchmarks import networks_by_hand
from examples.networks import attention, check, run
from examples.networks.__main__ import main
from examples.networks.tree_lstm import Phrase, Word
from examples.networks.visits import Visits, visits

pytestmark = [pytest.mark.long, pytest.mark.promotion("standard")]

FORKING = ("tree_lstm", "mv_rnn", "drnn", "two_types", "tree_rae")
SMALL = {"nested_rnn": 3, "berxit": 4, "drnn": 4, "blockdrop": 4, "skipnet": 4}
PAPER = ("lstm", "nasrnn", "attention", "seq2seq", "blockdrop", "skipnet", "tree_rae")


def task(name: str, fork: str) -> run.Task:
    return run.Task(name, run.Settings(hidden=4, batch=3, most=SMALL.get(name, 5), fork=fork))


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Without PyTorch, whose side is compared in a test of its own; and ranks may differ, as users have it."""
    monkeypatch.setattr(check, "has_torch", lambda: False)
    with jax.numpy_rank_promotion("allow"):
        yield


@pytest.mark.share(6)
@pytest.mark.parametrize("name", networks.NAMES)
def test_predictions_in_lanes(name):
    assert task(name, "never").check_predictions() == "plain Python"


@pytest.mark.share(4, 2)
@pytest.mark.parametrize("name", FORKING)
def test_predictions_by_tasks(name):
    assert task(name, "always").check_predictions() == "plain Python"


@pytest.mark.share(18, 0)
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


def test_sizes_of_the_paper():
    found = {name: run.paper(name, run.Settings(batch=8)) for name in networks.NAMES}
    assert tuple(name for name, settings in found.items() if settings is not None) == PAPER
    assert found["lstm"] == run.Settings(hidden=256, batch=8, most=64, more={"layers": 10})
    for name in ("lstm", "attention", "blockdrop"):
        sizes = found[name].more
        w = run.import_module(f"examples.networks.{name}").weights(np.random.default_rng(0), 8, **sizes)
        match name:
            case "lstm":
                assert len(w["cells"]) == sizes["layers"]
            case "attention":
                assert len(w["key"]) == sizes["heads"]
            case _:
                assert [len(stage) for stage in w["stages"]] == 3 * [sizes["blocks"]]


def test_no_sizes_of_the_paper(capsys):
    with pytest.raises(SystemExit):
        main(["berxit", "--paper"])
    assert "berxit is none of the networks" in capsys.readouterr().err


def test_rooms_of_attention():
    with pytest.raises(ValueError, match="at most 64 words, not 65"):
        attention.examples(np.random.default_rng(0), 1, 65)


def decided(name):
    """The numbers of blocks that run, and of words that are written."""
    some = run.Task(name, run.Settings(hidden=16, batch=16, most=8))
    said = some.predict()
    return np.asarray(said.lengths if isinstance(said, pcbatch.Ragged) else said[1])


@pytest.mark.share(3, 0)
@pytest.mark.parametrize("name", ["seq2seq", "blockdrop", "skipnet"])
def test_examples_decide_otherwise(name):
    assert len(set(decided(name).tolist())) > 1


@pytest.mark.full_only
def test_command(capsys):
    arguments = ["tree_lstm", "--hidden", "4", "--batch", "3", "--most", "5", "--train", "--repeats", "1"]
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("tree_lstm: 3 examples, hidden 4")
    assert [line.strip().split(" as in ")[0] for line in lines[1::2]] == ["predictions", "gradients"]
    assert "visits of blocks, at least" in lines[2]


@pytest.mark.share(2)
@pytest.mark.parametrize("name", ["birnn", "tree_lstm"])
def test_visits_are_no_fewer_than_the_bound(name):
    some = task(name, "auto")
    found = visits(some.batched, some.weights, some.inputs)
    assert 0 < found.bound <= found.made
    assert str(Visits(1200, 1000)) == "1,200 visits of blocks, at least 1,000 with any schedule: ratio 1.20"


@pytest.mark.share(11, 1)
@pytest.mark.parametrize("name", ["tree_lstm", "mv_rnn", "birnn", "rae", *PAPER])
def test_batches_by_hand(name):
    some = task(name, "never")
    plain = check.plain_predictions(some.network, some.weights, some.examples)
    wanted = np.concatenate([np.ravel(one[0] if isinstance(one, tuple) else one) for one in plain])
    for way, by_hand in networks_by_hand.ways(some).items():
        found = networks_by_hand.shown(some, by_hand.predict(some.weights))
        check.compare(found, wanted, way)
    slope = check.plain_gradient(some.network, some.weights, some.examples)
    check.compare(by_hand.gradient(some.weights), slope, f"gradient of {name}")
    assert by_hand.steps > 1


def test_trees_as_arrays():
    found = networks_by_hand.arrays([Word(7), Phrase(Word(1), Phrase(Word(2), Word(3)))])
    assert found.left.tolist() == [[-1, -1, -1, -1, -1], [1, -1, 3, -1, -1]]
    assert found.right.tolist() == [[-1, -1, -1, -1, -1], [2, -1, 4, -1, -1]]
    assert found.word.tolist() == [[7, 0, 0, 0, 0], [0, 1, 0, 2, 3]]


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


def test_examples_as_dynet_is_given_them():
    assert benchmark.written(Phrase(Word(1), Phrase(Word(2), Word(3)))) == [1, [2, 3]]
    assert benchmark.written((np.array([1, 2]), 3)) == [[1, 2], 3]
    assert list(benchmark.named({"head": np.zeros(2), "cell": {"bias": np.ones(1)}})) == ["head", "cell.bias"]
    ways, settings = ["one", "other", "third"], run.Settings(8, 2)
    found = {"one": benchmark.Measured(0.0123, 1234), "third": benchmark.Measured(2.0)}
    assert benchmark.row("drnn", settings, found, ways) == "| drnn, 8, 2 | 12.3 (1,234) | - | 2000.0 |"
