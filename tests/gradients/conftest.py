"""Both ways in which the lanes of a gradient run: one after the other, and together."""

from collections.abc import Iterator

import pytest

from pcbatch.transforms import tangent


@pytest.fixture(scope="module", autouse=True, params=["alone", "together"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """The way: by the choice that users get, which takes a few lanes one by one; or without that choice."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "together":
            patch.setattr(tangent, "by_reruns", lambda run: False)
        yield request.param


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out tests of a full tape where there is none, and of lanes that run one by one where they do not."""
    wrong = {True: "tape", False: "alone"}
    items[:] = [item for item in items if item.get_closest_marker(wrong[_is_alone(item)]) is None]


def _is_alone(item: pytest.Item) -> bool:
    """Whether a test of this folder lets lanes run one after the other; of others, True where they are not marked."""
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return params.get("way", "alone") == "alone"
