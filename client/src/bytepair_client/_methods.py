"""How an operation becomes a method of a client: what both kinds of client do alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature
from typing import Any, TypeVar

C = TypeVar("C")


def prepared(
    operation: Callable[..., C],
    defaults: object,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> C:
    """The call that an operation makes of the arguments of its method.

    Raises:
        TypeError: More positional arguments than the method takes, or others that it does not.
    """
    positional = _positional(operation)
    if len(arguments) > len(positional):
        takes = f"one argument without its name ({positional[0]})" if positional else "names only"
        raise TypeError(
            f"{operation.__name__}() takes {takes}: write the others with their names, such as "
            'encoding="o200k_base"'
        )
    return operation(defaults, *arguments, **options)


@cache
def _positional(operation: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a method's positional arguments: those of the operation but `defaults`."""
    return tuple(
        name
        for name, parameter in signature(operation).parameters.items()
        if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
    )[1:]
