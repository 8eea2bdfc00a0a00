"""Range checks for settings of studies; all raise InputError naming the first bad one."""

from collections.abc import Callable

from clustered_fl.errors import InputError


def require_at_least(minimum: float, **settings: float) -> None:
    """Check that each of the named settings is at least `minimum`."""
    _require(lambda value: not value < minimum, f"at least {minimum} is needed", settings)


def require_positive(**settings: float) -> None:
    """Check that each of the named settings is greater than zero."""
    _require(lambda value: value > 0, "a number above 0 is needed", settings)


def require_between(minimum: float, maximum: float, **settings: float) -> None:
    """Check that each of the named settings lies strictly between `minimum` and `maximum`."""
    rule = f"must lie between {minimum} and {maximum}"
    _require(lambda value: minimum < value < maximum, rule, settings)


def _require(fits: Callable[[float], bool], rule: str, settings: dict[str, float]) -> None:
    for name, value in settings.items():
        if not fits(value):
            raise InputError(f"setting {name} is {value}, but {rule}")
