"""How batched functions are copied and pickled: as functions are, by name."""

from __future__ import annotations

import sys
from typing import Any

from pcbatch.options import Options


class Named:
    """What `Batched` is to `copy` and `pickle`. It never changes, so a copy is the object itself; and it holds compiled
    programs, which stay in their process."""

    fn: Any
    options: Options

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        """The name under which the module has it. One made of what has that name, by `with_options` or by
        `g = pcbatch.batch(f)`: that, and its own options."""
        found = _by_name(self.fn.__module__, self.fn.__qualname__)
        plain = found.fn if isinstance(found, Named) else found
        if found is self or plain is not self.fn:
            return str(self.fn.__qualname__)  # what is not there is told by pickle
        return _again, (found, self.options)


def _by_name(module: str, path: str) -> Any:
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


def _again(fn: Any, options: Options) -> Any:
    from pcbatch.api.batch import batch

    return batch(fn, **{name: getattr(options, name) for name in Options.__dataclass_fields__})
