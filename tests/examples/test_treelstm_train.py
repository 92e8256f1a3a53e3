"""Training: it learns, an interrupted one goes on bit for bit, a checkpoint is whole or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

optax = pytest.importorskip("optax")

from examples.treelstm import baselines, checkpoint, data  # noqa: E402
from examples.treelstm.__main__ import main  # noqa: E402
from examples.treelstm.train import (  # noqa: E402
    Progress,
    Saver,
    Settings,
    level_by_level,
    make_data,
    recursive,
    resume,
    start,
    stepper,
    train,
)

pytestmark = [pytest.mark.share(3), pytest.mark.long, pytest.mark.promotion("standard")]

SMALL = Settings(trees=24, held_out=7, most=5, hidden=4, batch=4, epochs=2, rate=1e-2)
HAND = level_by_level(width=8)


def same(one, other):
    """Bit for bit."""
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


class Stopped(Exception):
    """As if somebody had pulled the plug."""


def stops_after(steps: int, saver: Saver):
    def save(progress: Progress) -> None:
        saver(progress)
        if progress.step == steps:
            raise Stopped

    return save


class TestTraining:
    @pytest.mark.full_only
    def test_it_learns_what_a_bag_of_words_cannot(self):
        settings = Settings(trees=1500, held_out=300, most=8, hidden=16, batch=50, epochs=8, rate=1e-2)
        known = make_data(settings)
        found = train(settings, known, level_by_level(width=32))
        assert len(found.scores) == 8 and found.step == 240
        assert found.losses[-30:].mean() < 0.2 * found.losses[0]
        assert found.scores[-1, 1] > baselines.bag_of_words(*known) + 0.1 > baselines.majority(*known)

    def test_trees_held_out_are_others(self):
        known = make_data(SMALL)
        assert len(known.held_out.left) == SMALL.held_out
        assert not np.array_equal(known.train.word[: SMALL.held_out], known.held_out.word)

    def test_the_commonest_class(self):
        known = make_data(replace(SMALL, trees=500, held_out=500))
        shares = np.bincount(known.train.label[:, 0]) / 500
        assert baselines.majority(known.train, known.train) == pytest.approx(shares.max())

    @pytest.mark.full_only
    def test_a_step_by_pcbatch_is_that_by_hand(self):
        known, before = make_data(SMALL), start(SMALL)
        few = known.train.pick(slice(0, SMALL.batch))
        found = []
        for gradient in (recursive(data.highest(known.train)), HAND):
            weights, _, value = stepper(SMALL.rate, gradient)(before.weights, before.optimiser, gradient.prepare(few))
            found.append((weights, value))
        for one, other in zip(*map(jax.tree.leaves, found), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


class TestResuming:
    @pytest.mark.full_only
    @pytest.mark.parametrize("stop", [1, 6, 7])
    def test_the_weights_are_those_of_a_training_without_a_break(self, stop, tmp_path):
        known, path = make_data(SMALL), tmp_path / "state.npz"
        whole = train(SMALL, known, HAND)
        with pytest.raises(Stopped):
            train(SMALL, known, HAND, save=stops_after(stop, Saver(path, SMALL, 1)))
        same(train(SMALL, known, HAND, resume(path, SMALL)), whole)

    @pytest.mark.full_only
    def test_so_it_is_with_the_gradient_of_the_recursion(self, tmp_path):
        known, path = make_data(SMALL), tmp_path / "state.npz"
        gradient = recursive(data.highest(known.train))
        whole = train(SMALL, known, gradient)
        assert np.isfinite(whole.losses).all() and whole.losses[-6:].mean() < whole.losses[0]
        with pytest.raises(Stopped):
            train(SMALL, known, gradient, save=stops_after(7, Saver(path, SMALL, 5)))
        same(train(SMALL, known, gradient, resume(path, SMALL)), whole)

    def test_work_since_the_last_checkpoint_is_done_again(self, tmp_path):
        known, path = make_data(SMALL), tmp_path / "state.npz"
        with pytest.raises(Stopped):
            train(SMALL, known, HAND, save=stops_after(7, Saver(path, SMALL, 5)))
        assert resume(path, SMALL).step == 5
        same(train(SMALL, known, HAND, resume(path, SMALL)), train(SMALL, known, HAND))

    def test_a_finished_training_can_be_longer(self, tmp_path):
        known, path = make_data(SMALL), tmp_path / "state.npz"
        longer = replace(SMALL, epochs=3)
        train(SMALL, known, HAND, save=Saver(path, SMALL, 1000))
        same(train(longer, known, HAND, resume(path, longer)), train(longer, known, HAND))

    @pytest.mark.full_only
    def test_killed_at_any_moment(self, tmp_path):
        """The process is killed while it writes checkpoints after every step."""
        path, known = tmp_path / "state.npz", make_data(SMALL)
        many = replace(SMALL, epochs=10_000)
        code = (
            "import sys, pathlib; from examples.treelstm.train import *\n"
            f"settings = {many!r}\n"
            "saver = Saver(pathlib.Path(sys.argv[1]), settings, 1)\n"
            "def save(progress):\n"
            "    saver(progress)\n"
            "    print(progress.step, flush=True)\n"
            "train(settings, make_data(settings), level_by_level(width=8), save=save)\n"
        )
        child = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) == 3:
                child.kill()
                break
        child.stdout.close()
        child.wait()
        found = resume(path, many)
        assert found.step >= 3
        epochs = -(-found.step // SMALL.steps_per_epoch)
        until = replace(SMALL, epochs=epochs)
        resumed = train(until, known, HAND, found)
        same(resumed, train(until, known, HAND))


class TestCheckpoint:
    TREE = {"a": jnp.arange(3.0), "b": (np.zeros((0, 2), np.float32), jnp.int32(4))}

    def test_it_comes_back(self, tmp_path):
        path = tmp_path / "c.npz"
        rows = np.ones((5, 2), np.float32)
        checkpoint.save(path, {"a": self.TREE["a"] + 1, "b": (rows, jnp.int32(9))}, {"seed": 1})
        found = checkpoint.load(path, self.TREE, {"seed": 1})
        assert found["a"].tolist() == [1, 2, 3] and int(found["b"][1]) == 9
        np.testing.assert_array_equal(found["b"][0], rows)
        assert isinstance(found["a"], jax.Array) and isinstance(found["b"][0], np.ndarray)
        assert [each.name for each in tmp_path.iterdir()] == ["c.npz"]

    def test_a_write_that_fails_leaves_the_one_before(self, tmp_path, monkeypatch):
        path = tmp_path / "c.npz"
        checkpoint.save(path, self.TREE, {})

        def full(file, **arrays):
            file.write(b"half")
            raise OSError("no space left")

        monkeypatch.setattr(np, "savez", full)
        with pytest.raises(OSError, match="no space"):
            checkpoint.save(path, self.TREE, {})
        assert checkpoint.load(path, self.TREE, {})["a"].tolist() == [0, 1, 2]
        assert [each.name for each in tmp_path.iterdir()] == ["c.npz"]

    @pytest.mark.parametrize(
        ("like", "about", "message"),
        [
            ({**TREE, "a": jnp.arange(4.0)}, {"seed": 1}, r"a is float32\[3\] there and float32\[4\] here"),
            ({**TREE, "a": jnp.arange(3)}, {"seed": 1}, r"a is float32\[3\] there and int32\[3\] here"),
            ({**TREE, "c": jnp.zeros(1)}, {"seed": 1}, "holds other arrays: c"),
            (TREE, {"seed": 2}, "belongs to another training: seed is 1 there and 2 here"),
            (TREE, {"seed": 1, "more": 0}, "more is None there and 0 here"),
        ],
    )
    def test_what_belongs_to_something_else_is_refused(self, like, about, message, tmp_path):
        checkpoint.save(tmp_path / "c.npz", self.TREE, {"seed": 1})
        with pytest.raises(checkpoint.CheckpointError, match=message):
            checkpoint.load(tmp_path / "c.npz", like, about)

    def test_another_version_is_refused(self, tmp_path, monkeypatch):
        checkpoint.save(tmp_path / "c.npz", self.TREE, {})
        monkeypatch.setattr(checkpoint, "VERSION", 2)
        with pytest.raises(checkpoint.CheckpointError, match="version is 1 there and 2 here"):
            checkpoint.load(tmp_path / "c.npz", self.TREE, {})

    @pytest.mark.parametrize("content", ["", "text", "cut", "pickle", "archive"])
    def test_what_is_no_checkpoint_is_refused(self, content, tmp_path):
        path = tmp_path / "c.npz"
        match content:
            case "cut":
                checkpoint.save(path, self.TREE, {})
                path.write_bytes(path.read_bytes()[:-30])
            case "pickle":
                with path.open("wb") as file:
                    np.savez(file, a=np.array({"code": print}, object))
            case "archive":
                np.savez(path, a=np.zeros(3))
            case _:
                path.write_text(content)
        with pytest.raises(checkpoint.CheckpointError, match="is not a checkpoint"):
            checkpoint.load(path, self.TREE, {})


FEW = "--trees 40 --held-out 9 --most 5 --hidden 4 --batch 8 --by-hand --rate 0.01".split()


class TestCommand:
    def test_it_trains_saves_and_goes_on(self, tmp_path, capsys):
        pytest.importorskip("tqdm")
        state, out = tmp_path / "state.npz", tmp_path / "run.json"
        saved = ["--checkpoint", str(state), "--every", "2"]
        assert main([*FEW, "--epochs", "1", *saved, "--resume"]) == 0
        assert main([*FEW, "--epochs", "2", *saved, "--resume", "--json", str(out)]) == 0
        numbers = json.loads(out.read_text())
        assert numbers["steps"] == 10 and numbers["run_steps"] == 5
        assert 0 <= numbers["accuracy"] <= 1 and 0 < numbers["loss_last_epoch"] < numbers["loss_first"]
        assert {"accuracy_majority", "accuracy_bag_of_words", "versions", "device"} <= set(numbers)
        printed = capsys.readouterr().out
        assert "a bag of words" in printed and "10 steps of 8 trees" in printed

    @pytest.mark.full_only
    def test_pictures(self, tmp_path):
        pytest.importorskip("tqdm")
        pytest.importorskip("matplotlib")
        assert main([*FEW, "--epochs", "1", "--loss", "root", "--plot", str(tmp_path / "new")]) == 0
        assert (tmp_path / "new" / "training.png").stat().st_size > 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--trees", "0"], "less than 1"),
            (["--most", "1"], "less than 2"),
            (["--hidden", "many"], "invalid integer value"),
            (["--rate", "0"], "not a positive number"),
            (["--batch", "64", "--trees", "63"], "is more than"),
            (["--resume"], "needs --checkpoint"),
            (["--loss", "words"], "invalid choice"),
            (["--checkpoint", "/no/such/directory/state.npz"], "no such directory"),
            (["--checkpoint", __file__], "give --resume"),
            (["--checkpoint", __file__, "--resume"], "is not a checkpoint"),
            (["--plot", __file__], "not a directory"),
        ],
    )
    def test_bad_arguments(self, arguments, message, capsys):
        with pytest.raises(SystemExit) as stop:
            main([*FEW, *arguments])
        assert stop.value.code == 2
        assert message in capsys.readouterr().err


def test_the_readme_names_every_file():
    folder = Path(data.__file__).parent
    text = (folder / "README.md").read_text("utf-8")
    for path in folder.glob("[a-z]*.py"):
        assert f"({path.name})" in text, path.name
