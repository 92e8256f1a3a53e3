"""pcbatch: write a function for one example; run it on a batch, each lane at its own pace."""

import typing

from pcbatch.api import old_names
from pcbatch.api.batch import batch as batch
from pcbatch.api.batch import inline as inline
from pcbatch.api.batch import primitive as primitive
from pcbatch.api.batch import unroll as unroll
from pcbatch.api.batched import Batched as Batched
from pcbatch.api.learn_schedule import learn_schedule as learn_schedule
from pcbatch.ask.asking import gather as gather
from pcbatch.ask.asking import serving as serving
from pcbatch.call.devices import use_cpu_devices as use_cpu_devices
from pcbatch.call.results import Result as Result
from pcbatch.data.host.making import ragged as ragged
from pcbatch.data.host.ragged import Ragged as Ragged
from pcbatch.data.objects.made_results import Made as Made
from pcbatch.data.objects.pack import pack as pack
from pcbatch.data.objects.packed import Packed as Packed
from pcbatch.errors import BatchRuntimeError as BatchRuntimeError
from pcbatch.errors import CompileError as CompileError
from pcbatch.errors import NonFiniteError as NonFiniteError
from pcbatch.errors import PcbatchError as PcbatchError
from pcbatch.errors import StateError as StateError
from pcbatch.errors import TooLargeError as TooLargeError
from pcbatch.errors import UsageError as UsageError
from pcbatch.plan import Dense as Dense
from pcbatch.plan import Few as Few
from pcbatch.plan import Kernel as Kernel
from pcbatch.plan import Plan as Plan
from pcbatch.plan import Strips as Strips
from pcbatch.runs.interrupts import Interrupted as Interrupted
from pcbatch.runs.run_handle import Run as Run
from pcbatch.runtime.learned.policy import Learned as Learned
from pcbatch.runtime.vm.policies import Policy as Policy
from pcbatch.runtime.vm.status import Status as Status

__version__ = "0.1.0"
__all__ = [
    "BatchRuntimeError",
    "Batched",
    "CompileError",
    "Dense",
    "Few",
    "Interrupted",
    "Kernel",
    "Learned",
    "Made",
    "NonFiniteError",
    "Packed",
    "PcbatchError",
    "Plan",
    "Policy",
    "Ragged",
    "Result",
    "Run",
    "StateError",
    "Status",
    "Strips",
    "TooLargeError",
    "UsageError",
    "batch",
    "gather",
    "inline",
    "learn_schedule",
    "pack",
    "primitive",
    "ragged",
    "serving",
    "unroll",
    "use_cpu_devices",
]


def __dir__() -> list[str]:
    """Public names alone; modules of the package can be imported all the same."""
    return [*__all__, "__version__"]


if not typing.TYPE_CHECKING:  # a type checker would take any name for one of the package
    __getattr__ = old_names.public_name  # of the earlier release, with a warning
