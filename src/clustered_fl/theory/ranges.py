"""Refusing settings of a study that make no sense."""

from clustered_fl.errors import InputError


def require_at_least(minimum: float, **settings: float) -> None:
    """Check that each of the named settings is at least `minimum`.

    Raises:
        InputError: naming the first setting that is smaller.
    """
    for name, value in settings.items():
        if value < minimum:
            raise InputError(f"setting {name} is {value}, but at least {minimum} is needed")


def require_positive(**settings: float) -> None:
    """Check that each of the named settings is greater than zero.

    Raises:
        InputError: naming the first setting that is not.
    """
    for name, value in settings.items():
        if not value > 0:
            raise InputError(f"setting {name} is {value}, but a number above 0 is needed")


def require_between(minimum: float, maximum: float, **settings: float) -> None:
    """Check that each of the named settings lies strictly between `minimum` and `maximum`.

    Raises:
        InputError: naming the first setting that does not.
    """
    for name, value in settings.items():
        if not minimum < value < maximum:
            raise InputError(
                f"setting {name} is {value}, but must lie between {minimum} and {maximum}"
            )
