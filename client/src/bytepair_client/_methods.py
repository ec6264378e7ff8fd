"""From an operation to the method of a client: its signature, its help, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar, cast, get_args, get_type_hints

from bytepair_client._options import NOT_GIVEN

Run = TypeVar("Run", bound=Callable[..., Any])
Made = TypeVar("Made")


def method_of(operation: Callable[..., Any]) -> Callable[[Run], Run]:
    """As functools.wraps, but `help()` shows each option by its name, and `self`."""

    def decorate(run: Run) -> Run:
        method = cast(Run, wraps(operation)(run))
        method.__signature__ = _signature(operation)  # type: ignore[attr-defined]
        return method

    return decorate


def prepared(
    operation: Callable[..., Made],
    defaults: object,
    arguments: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Made:
    """The call that an operation makes of the arguments of its method; NOT_GIVEN is left out.

    Raises TypeError for more positional arguments than the method takes, or others than it does.
    """
    positional, names = _names(operation)
    if len(arguments) > len(positional):
        takes = f"only {' and '.join(positional)}" if positional else "nothing"
        raise TypeError(
            f"{operation.__name__}() takes {takes} without a name: write the others with their "
            'names, such as encoding="o200k_base"'
        )
    given = {}
    for name, value in options.items():
        if name not in names:
            raise TypeError(f"{operation.__name__}() got an unexpected keyword argument {name!r}")
        if value is not NOT_GIVEN:
            given[name] = value
    return operation(defaults, *arguments, **given)


@cache
def _signature(operation: Callable[..., Any]) -> Signature:
    first, *parameters = signature(operation, eval_str=True).parameters.values()
    if parameters and parameters[-1].kind is Parameter.VAR_KEYWORD:
        rest = parameters.pop()
        (options,) = get_args(rest.annotation)  # of Unpack
        parameters += (
            Parameter(name, Parameter.KEYWORD_ONLY, default=NOT_GIVEN, annotation=annotation)
            for name, annotation in get_type_hints(options).items()
        )
    return Signature([first.replace(name="self", annotation=Parameter.empty), *parameters])


@cache
def _names(operation: Callable[..., Any]) -> tuple[tuple[str, ...], frozenset[str]]:
    """The names of a method's positional arguments, and of all."""
    _, *parameters = _signature(operation).parameters.values()
    positional = (each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD)
    return tuple(positional), frozenset(each.name for each in parameters)
