"""Exit codes of a job: 0 for success, 2 for an error in one sentence, 128 + n for signal n."""

from collections.abc import Callable
from contextlib import suppress
from signal import SIGINT

from clustered_fl.errors import InputError, InterruptionError

_TEXTS = "can't allocate memory", "Cannot allocate memory", "CUDA error: out of memory"
"""Out-of-memory messages of PyTorch's CPU allocator, the operating system (also from mmap), and
CUDA."""
RULES = {
    **{name: (name,) for name in ("dataset", "encoder", "grouping", "train", "verdicts")},
    "partition": ("partition", "drift"),
    "study": ("study_<name>",),
    "restore": ("restore_<kind>",),
    "notebook": ("figure", "table"),
    "check": ("test_results",),
    "report": ("report_site",),
    "publish": ("publish", "pages"),
    "archive": ("archive",),
}
"""Step -> the rules that run it; the others are run by hand (`tests/unit/test_ending.py`)."""
_OWN = {"train": "run", "grouping": "grouping"}
"""Steps whose memory the ledger states -> the entry that states it."""


def exit_code(job: Callable[[], None], tell: Callable[[str], None], step: str = "") -> int:
    """Run a job and return its exit code; `tell` receives one sentence if it fails.

    Args:
        step: of the command line; decides what a job without memory is told.
    """
    try:
        job()
    except InputError as error:
        tell(f"error: {error}")
        return 2
    except (InterruptionError, KeyboardInterrupt) as error:  # the latter outside of training
        ended = error if isinstance(error, InterruptionError) else InterruptionError(SIGINT)
        with suppress(BrokenPipeError):  # the reader of the messages was interrupted, too
            tell(str(ended))
        return 128 + ended.number
    except (MemoryError, OSError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        tell(f"error: {_out_of_memory(error, step)}")
        return 2
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """PyTorch raises its own errors; on a CPU these have no special class."""
    own = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return own or any(text in str(error) for text in _TEXTS)


def _out_of_memory(error: Exception, step: str) -> str:
    from clustered_fl.records.machine import peak_memory

    why = (str(error) or "no reason given").splitlines()[0]
    if "CUDA" in why:
        why = ". ".join(why.split(". ")[:3]).removesuffix(".")  # PyTorch's own advice follows
        return f"out of memory on the GPU ({why}); use --config device=cpu or a larger GPU"
    return f"out of memory, with {peak_memory()} MB in use at most ({why}); {_advice(step)}"


def _advice(step: str) -> str:
    """What to do about a step that had too little memory."""
    if step not in RULES:
        return "use a machine with more memory"
    own = f"raise the {_OWN[step]}'s memory_mb, or " if step in _OWN else ""
    resources = " ".join(f"{rule}:mem_mb=<MB>" for rule in RULES[step])
    return f"to reserve more, {own}use --set-resources {resources}"
