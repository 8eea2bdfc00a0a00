"""Exit codes of a job: 0 for success, 2 for an error in one sentence, 128 + n for signal n."""

from collections.abc import Callable
from contextlib import suppress

from clustered_fl.errors import InputError, InterruptionError

_TEXTS = "can't allocate memory", "Cannot allocate memory", "CUDA error: out of memory"
"""Out-of-memory messages of PyTorch's CPU allocator, the operating system (also from mmap), and
CUDA."""


def exit_code(job: Callable[[], None], tell: Callable[[str], None]) -> int:
    """Run a job and return its exit code; `tell` receives one sentence if it fails."""
    try:
        job()
    except InputError as error:
        tell(f"error: {error}")
        return 2
    except InterruptionError as error:
        with suppress(BrokenPipeError):  # the reader of the messages was interrupted, too
            tell(str(error))
        return 128 + error.number
    except (MemoryError, OSError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        tell(f"error: {_out_of_memory(error)}")
        return 2
    return 0


def _is_out_of_memory(error: Exception) -> bool:
    """PyTorch raises its own errors; on a CPU these have no special class."""
    own = type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError)
    return own or any(text in str(error) for text in _TEXTS)


def _out_of_memory(error: Exception) -> str:
    from clustered_fl.records.machine import peak_memory

    why = (str(error) or "no reason given").splitlines()[0]
    if "CUDA" in why:
        why = ". ".join(why.split(". ")[:3]).removesuffix(".")  # PyTorch's own advice follows
        return f"out of memory on the GPU ({why}); use --config device=cpu or a larger GPU"
    return (
        f"out of memory, with {peak_memory()} MB in use at most ({why}); to reserve "
        "more, raise the run's memory_mb, or use --set-resources train:mem_mb=<MB>"
    )
