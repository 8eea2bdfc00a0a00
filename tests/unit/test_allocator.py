"""Freed memory is used again without new pages, and pages that nothing uses are returned."""

import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from clustered_fl.allocator import keep_freed_memory
if sys.argv[1] == "keep" and not keep_freed_memory():
    sys.exit(3)
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(2**23)  # 64 MB
before = faults()
for _ in range(20):
    np.ones(2**23)
print(faults() - before)
"""

GAPS = """
import sys, time
import torch
from clustered_fl import allocator
allocator.SECONDS = float(sys.argv[1])
if not allocator.keep_freed_memory():
    sys.exit(3)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
before, small = resident(), []
for _ in range(40):
    large, other = torch.ones(2**21), torch.ones(2**20)  # 8 and 4 MB
    del large
    small.append([torch.ones(8) for _ in range(4)])
    del other
    small.append(bytes(30))
time.sleep(0.5)
print(resident() - before)
"""


def printed(code, argument):
    done = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot keep freed memory")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_pages_of_freed_memory_are_used_again():
    assert printed(FAULTS, "keep") < 100 < printed(FAULTS, "default")


def test_pages_between_small_objects_are_returned():
    assert printed(GAPS, "0.1") < 30e6 < 200e6 < printed(GAPS, "3600")
