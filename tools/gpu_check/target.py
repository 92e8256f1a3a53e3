"""The GPU that programs are compiled for: an H100, described by a text of the form that XLA has for its targets.

XLA makes graphs of loops where the older of `driver_version` and `runtime_version` is 12.3 or newer; without them it
takes the driver for too old, and leaves loops to the host without a word.
"""

from __future__ import annotations

from typing import Final

H100: Final = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128 block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: 3352320000000 l2_cache_size: 52428800
  clock_rate_ghz: 1.98 device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 } registers_per_core_limit: 65536 registers_per_block_limit: 65536
  driver_version: "12.9.0" runtime_version: "12.9.0" compile_time_toolkit_version: "12.9.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 12 minor: 9 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""
KIND: Final = "NVIDIA H100 80GB HBM3"
