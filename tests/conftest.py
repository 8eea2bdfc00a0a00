"""What holds for every test: no network, no screen, one thread, the same examples in every run."""

import os
import socket
import sysconfig
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Before torch, matplotlib or datasets are imported, and for every process that a test starts. The
# path makes `python`, `snakemake` and `shfmt` (which snakefmt calls) those of this environment.
os.environ.update(
    OMP_NUM_THREADS="1",
    NUMBA_NUM_THREADS="1",
    MPLBACKEND="Agg",
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    PATH=os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", ""))),
)

# No deadline: a busy machine is not a failure. Derandomised, so that a red test is red twice.
settings.register_profile(
    "project",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("project")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """Refuse every connection that leaves the machine; Jupyter kernels talk over loopback."""
    connect = socket.socket.connect

    def guarded(self, address):
        host = address[0] if isinstance(address, tuple) else "127.0.0.1"
        if host not in {"127.0.0.1", "::1", "localhost"}:
            raise RuntimeError(f"a test tried to reach {host}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
