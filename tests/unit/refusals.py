"""What is said where something is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from clustered_fl.errors import InputError


def told(function: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """The one sentence with which a call is refused."""
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    (line,) = str(caught.value).splitlines()
    return line
