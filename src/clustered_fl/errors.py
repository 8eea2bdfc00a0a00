"""The one exception that a user causes and can put right."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class InputError(ValueError):
    """Input that cannot be used: its message is one sentence: what, where, what is allowed.

    The command line prints the sentence and exits with code 2; nothing else is shown, because a
    traceback would bury it.
    """


@contextmanager
def one_sentence() -> Iterator[None]:
    """Where input cannot be used, print why and exit with code 2."""
    try:
        yield
    except InputError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(2)
