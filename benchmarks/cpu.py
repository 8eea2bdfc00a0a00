"""CPU seconds of a process and everything below it, from Linux's /proc and per-process clocks.

Ray's workers are processes of their own, so that `time.process_time` sees a small part of what
Flower costs. /proc/PID/stat counts in hundredths of a second; the clock of a process, which any
other process may read, counts in nanoseconds.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICK = 1 / os.sysconf("SC_CLK_TCK")


def spent(function: Callable[[], Any]) -> tuple[Any, float, float]:
    """Call `function`; returns its result, its CPU seconds here and below, and its wall seconds.

    Looking through /proc costs milliseconds, and is kept out of what is counted.
    """
    below = _below()
    cpu, wall = time.process_time(), time.perf_counter()
    result = function()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return result, cpu + _below() - below, wall


def _below() -> float:
    """CPU seconds so far of all descendants of this process, the ended ones included."""
    processes = dict(filter(None, map(_status, Path("/proc").glob("[0-9]*"))))
    tree, total = [os.getpid()], _ended_children()
    for parent in tree:
        tree += [pid for pid, (above, _) in processes.items() if above == parent]
    for pid in tree[1:]:
        total += _clock(pid) + processes[pid][1]
    return total


def _ended_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _status(folder: Path) -> tuple[int, tuple[int, float]] | None:
    """Process number, and its parent and the CPU seconds of children it has waited for."""
    try:
        # The name comes second, in brackets, and may contain anything.
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
    except OSError:  # ended since it was listed
        return None
    return int(folder.name), (int(fields[1]), (int(fields[13]) + int(fields[14])) * TICK)


def _clock(pid: int) -> float:
    """CPU seconds of one process; the clock's number is what clock_getcpuclockid(3) returns."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0
