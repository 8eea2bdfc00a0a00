"""Freed memory is used again without new pages."""

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


def faults(mode):
    done = subprocess.run([sys.executable, "-c", FAULTS, mode], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip("this C library cannot keep freed memory")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_pages_of_freed_memory_are_used_again():
    assert faults("keep") < 100 < faults("default")
