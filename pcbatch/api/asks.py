"""The method by which host code asks a batched function for one example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pcbatch.api.calls import Calls, P, R
from pcbatch.api.public import public
from pcbatch.api.repeated_calls import DecidedRun
from pcbatch.ask.answers import Outcome, Values
from pcbatch.ask.asking import asked
from pcbatch.call.arguments import Arguments
from pcbatch.compiler.program import Program
from pcbatch.report.lane_failures import lane_errors
from pcbatch.runs.run_options import RunOptions
from pcbatch.runtime.vm.raw_result import RawResult


class Asks(Calls[P, R]):
    """The method by which host code asks for one example, and waits while others ask."""

    @public
    def ask(self, /, *args: Any, keep: bool = False, **kwargs: Any) -> Any:
        """Ask for the result of ONE example, and wait while others ask, too: their requests are answered in batches.

        In a call of `pcbatch.gather` other calls run meanwhile; a thread inside of `pcbatch.serving` sleeps; a
        coroutine awaits: `value = await f.ask(x)`. Requests make one batch if their own arguments have the same
        structure, shapes and dtypes, and what they share is the same, of NumPy equal. Each is a copy of its arguments.

        Args:
            *args, **kwargs: the arguments of one example, as the plain function takes them: also texts, and lists of a
                length of their own.
            keep: whether the result stays on the device, as a row that is an argument of later requests.

        Returns:
            The result of this example, with the structure that the plain function gives it. Numbers and arrays are
            NumPy's, and a list of them is one array. A row with `keep`.

        Raises:
            BatchRuntimeError: this example has failed. No other request sees that.

        Example:
            >>> import asyncio, pcbatch
            >>> @pcbatch.batch
            ... def square(x):
            ...     return x * x
            >>> async def main():
            ...     return await asyncio.gather(*(square.ask(x) for x in (1.0, 2.0, 3.0)))
            >>> [float(x) for x in asyncio.run(main())]
            [1.0, 4.0, 9.0]
        """
        return asked(self, args, kwargs, keep)

    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float | None) -> Callable[[], Outcome]:
        """Begin a batch, and return what waits for its values and for the errors of examples that failed."""
        decided = self._decided(args, kwargs) if timeout is None else None
        return lambda: self._outcome(args, kwargs, timeout, decided)

    def _outcome(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], timeout: float | None, decided: DecidedRun | None
    ) -> Outcome:
        if decided is not None and not decided.has_failed():
            return Values(decided.value(by_lane=True)), {}
        program, call, raw = self._run(args, kwargs, decided, RunOptions.checked({"timeout": timeout}))
        values = Values(program.value(raw, call, by_lane=True))
        return values, lane_errors(self.__name__, program, raw, call)

    def _arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], alone: bool = False
    ) -> tuple[Program, Arguments]:
        return self._programs.of_call(args, kwargs, alone=alone)

    def _values(self, program: Program, raw: RawResult) -> Values:
        return Values(program.value(raw, by_lane=True))

    def _error(self, program: Program, raw: RawResult, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BaseException:
        return lane_errors(self.__name__, program, raw, self._programs.prepare(args, kwargs))[0]
