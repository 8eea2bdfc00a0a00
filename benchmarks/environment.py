"""What every measured process finds in its environment; imports nothing that reads it."""

import os
from pathlib import Path

HERE = Path(__file__).parent

# One thread inside every operation, for every library that has threads of its own.
THREADS = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "NPROC": "1",  # the size of XLA's thread pool
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}
# No GPU, and no reports to the makers of the frameworks.
ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
    "FLWR_TELEMETRY_ENABLED": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def environment(threads: dict[str, str]) -> dict[str, str]:
    """Variables of a process that sees this checkout, with these thread settings and no others."""
    paths = [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    inherited = {key: value for key, value in os.environ.items() if key not in THREADS}
    return inherited | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | ENVIRONMENT | threads
