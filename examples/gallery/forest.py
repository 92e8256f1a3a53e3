"""A random forest trained by scikit-learn: each sample goes down every tree at its own pace."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

import pcbatch


@pcbatch.batch
def predict(x, forest):
    """The class with the highest mean probability over the trees."""
    total = jnp.zeros(forest["value"].shape[1])
    for root in forest["roots"]:
        node = root
        while forest["left"][node] >= 0:
            if x[forest["feature"][node]] <= forest["threshold"][node]:
                node = root + forest["left"][node]
            else:
                node = root + forest["right"][node]
        total = total + forest["value"][node]
    return jnp.argmax(total)


def main(lanes: int = 1000, trees: int = 20) -> None:
    """Train on half of the digits, predict others and compare with scikit-learn's predictions."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier

    images, digits = load_digits(return_X_y=True)
    model = RandomForestClassifier(trees, random_state=0).fit(images[::2], digits[::2])
    samples, truth = (np.resize(a, (lanes, *a.shape[1:])) for a in (images[1::2], digits[1::2]))
    found = predict.with_options(in_axes=(0, None))(jnp.array(samples), tables(model))
    np.testing.assert_array_equal(model.classes_[np.asarray(found)], model.predict(samples))
    right = np.mean(np.asarray(found) == truth)
    print(f"forest: {lanes} images through {trees} trees, {right:.1%} right, all as scikit-learn predicts")


def tables(model) -> dict[str, jnp.ndarray]:
    """All trees one after another; children are counted from the root of their tree."""
    grown = [estimator.tree_ for estimator in model.estimators_]
    return {
        "left": jnp.concatenate([tree.children_left for tree in grown]),
        "right": jnp.concatenate([tree.children_right for tree in grown]),
        "feature": jnp.concatenate([tree.feature for tree in grown]),
        "threshold": jnp.concatenate([tree.threshold for tree in grown]),
        "value": jnp.concatenate([tree.value[:, 0] for tree in grown]),
        "roots": jnp.array(np.cumsum([0, *(tree.node_count for tree in grown[:-1])])),
    }


if __name__ == "__main__":
    main()
