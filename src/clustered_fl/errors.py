"""What a user causes: input that cannot be used, which can be put right, and interruptions."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Input that cannot be used: its message is one sentence: what, where, what is allowed.

    The command line prints the sentence and exits with code 2; nothing else is shown, because a
    traceback would bury it.
    """


class InterruptionError(Exception):
    """SIGINT or SIGTERM ended a job; what it had computed is in its checkpoint.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by signal {number}; the same command continues")
        self.number = number


@contextmanager
def one_sentence() -> Iterator[None]:
    """Where input cannot be used, print why and exit with code 2."""
    try:
        yield
    except InputError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
