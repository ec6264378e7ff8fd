"""From an operation to the method of a client: its signature, its help, and its arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import Parameter, Signature
from typing import Any, cast, get_args, get_type_hints

from bytepair_client._options import NOT_GIVEN


def method_of(
    operation: Callable[..., Any], carry_out: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """The method that makes the call of `operation` and carries it out.

    `help()` shows each option by its name. The method raises TypeError for more positional
    arguments than it takes, or for others than it has.

    Args:
        operation: Makes a call of the client's Defaults and the method's arguments.
        carry_out: Gives the result of the method, for what it is called on and the call. If it is
            a coroutine function, so is the method.
    """
    signature = _signature(operation)
    parameters = list(signature.parameters.values())[1:]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    names = frozenset(each.name for each in parameters)

    def called(self: Any, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        if len(arguments) > len(positional):
            takes = f"only {' and '.join(positional)}" if positional else "nothing"
            raise TypeError(
                f"{operation.__name__}() takes {takes} without a name: write the others with "
                'their names, such as encoding="o200k_base"'
            )
        given = {}
        for name, value in options.items():
            if name not in names:
                raise TypeError(
                    f"{operation.__name__}() got an unexpected keyword argument {name!r}"
                )
            if value is not NOT_GIVEN:
                given[name] = value
        return carry_out(self, operation(self._defaults, *arguments, **given))

    @wraps(operation)
    def method(self: Any, /, *arguments: Any, **options: Any) -> Any:
        return called(self, arguments, options)

    @wraps(operation)
    async def coroutine(self: Any, /, *arguments: Any, **options: Any) -> Any:
        return await called(self, arguments, options)

    made: Any = coroutine if inspect.iscoroutinefunction(carry_out) else method
    made.__signature__ = signature
    return cast(Callable[..., Any], made)


@cache
def _signature(operation: Callable[..., Any]) -> Signature:
    first, *parameters = inspect.signature(operation, eval_str=True).parameters.values()
    if parameters and parameters[-1].kind is Parameter.VAR_KEYWORD:
        rest = parameters.pop()
        (options,) = get_args(rest.annotation)  # of Unpack
        parameters += (
            Parameter(name, Parameter.KEYWORD_ONLY, default=NOT_GIVEN, annotation=annotation)
            for name, annotation in get_type_hints(options).items()
        )
    return Signature([first.replace(name="self", annotation=Parameter.empty), *parameters])
