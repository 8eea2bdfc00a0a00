"""The one exception that a user causes and can put right."""


class InputError(ValueError):
    """Input that cannot be used: its message is one sentence: what, where, what is allowed.

    The command line prints the sentence and exits with code 2; nothing else is shown, because a
    traceback would bury it.
    """
