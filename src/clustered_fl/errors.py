"""What a user causes: input that cannot be used, which can be put right, and interruptions."""


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
