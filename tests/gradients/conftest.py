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
