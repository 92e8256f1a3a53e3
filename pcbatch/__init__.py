"""pcbatch: write a function for one example; run it on a batch, each lane at its own pace."""

from pcbatch.api import Batched as Batched
from pcbatch.api import batch as batch
from pcbatch.api import inline as inline
from pcbatch.api import unroll as unroll
from pcbatch.devices import use_cpu_devices as use_cpu_devices
from pcbatch.errors import BatchRuntimeError as BatchRuntimeError
from pcbatch.errors import CompileError as CompileError
from pcbatch.errors import PcbatchError as PcbatchError
from pcbatch.errors import UsageError as UsageError
from pcbatch.modes import Dense as Dense
from pcbatch.modes import Few as Few
from pcbatch.modes import Strips as Strips
from pcbatch.results import BlockStats as BlockStats
from pcbatch.results import Result as Result
from pcbatch.results import Stats as Stats
from pcbatch.runtime.status import Status as Status

__version__ = "0.1.0"
__all__ = [
    "BatchRuntimeError",
    "Batched",
    "BlockStats",
    "CompileError",
    "Dense",
    "Few",
    "PcbatchError",
    "Result",
    "Stats",
    "Status",
    "Strips",
    "UsageError",
    "batch",
    "inline",
    "unroll",
    "use_cpu_devices",
]
