"""One engine in a process of its own, seen from outside; `measured_process.py` is the inside."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from environment import HERE, THREADS, environment
from gate import Outcome

# A round takes seconds, at most a minute; an engine that says nothing for so long hangs.
LIMIT_S, SHUTDOWN_S = 300, 20

OURS = "ours"
_number = count()


class Failed(Exception):  # noqa: N818 - one engine failed, the others go on
    """An engine ended or cannot do the cell; the message says why."""


class Measured:
    """One engine in its process.

    Args:
        engine: key of `peers.ENGINES`.
        cell: see `problem.CELLS`.
        folder: where its output and its updates are put.
        options: `step` cuts the problem to one batch per client, `samples` and `lr` change it,
            `default_threads` leaves the number of threads to the libraries; others go to the
            engine's adapter.
    Attributes:
        first: what it says of itself: version, and resident memory before its first round.
        first_round_s: from the start of the process to the end of its first round.
    Raises:
        Failed: if it does not come to the end of its first round.
    """

    def __init__(self, engine: str, cell: str, folder: Path, **options: Any) -> None:
        self.place = folder / f"{next(_number)}-{engine}"
        threads = {} if options.get("default_threads") else THREADS
        command = [str(HERE / "measured_process.py"), engine, cell, json.dumps(options)]
        self.killed, started = False, time.perf_counter()
        with self._log().open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(threads),
                start_new_session=True,  # so that it can be ended with everything it started
            )
        try:
            self.first = self.answer()
        except BaseException:  # an impatient user's too, whose signal it does not get
            self.kill()
            raise
        self.first_round_s = time.perf_counter() - started

    def ask(self, *command: str) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self.send(*command)
        return self.answer()

    def send(self, *command: str) -> None:
        """Send one command; if the process has ended, `answer` says why."""
        with suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(" ".join(command) + "\n")
            self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Wait for an answer, but not for ever."""
        late = threading.Event()
        limit = threading.Timer(LIMIT_S, lambda: (late.set(), self.kill()))
        limit.start()
        line = self.process.stdout.readline()
        limit.cancel()
        if late.is_set():
            raise Failed(f"said nothing for {LIMIT_S} s")
        answer = json.loads(line) if line else {"unavailable": self._last_words()}
        if "unavailable" in answer:
            self.kill()
            raise Failed(answer["unavailable"])
        return answer

    def outcome(self) -> Outcome:
        """Its updates and accuracy after one more round; the updates stay on the disk."""
        path = self.place.with_suffix(".npy")
        accuracy = self.ask("save", str(path))["accuracy"]
        updates = np.load(path, mmap_mode="r")
        path.unlink()  # the file lives as long as the array
        return Outcome(updates, accuracy)

    def close(self) -> None:
        """Let it end what it started; a simulator that hangs in its own shutdown is killed."""
        with suppress(BrokenPipeError, ValueError, subprocess.TimeoutExpired):
            self.process.communicate("quit\n", timeout=SHUTDOWN_S)
        self.kill()

    def kill(self) -> None:
        """End the process and its children at once, but only once: numbers are used again."""
        if not self.killed:
            self.killed = True
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _log(self) -> Path:
        return self.place.with_suffix(".log")

    def _last_words(self) -> str:
        lines = self._log().read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
