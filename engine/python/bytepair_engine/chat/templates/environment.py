"""Jinja2's sandbox with provenance: constants are marked, and every operation is charged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from types import MethodType
from typing import Any, Final

from jinja2 import Undefined, nodes
from jinja2.compiler import CodeGenerator, Frame, operators
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from bytepair_engine.chat.errors import InvalidChat, TemplateLimit
from bytepair_engine.chat.templates.budget import (
    SIZED,
    VIEWS,
    one_call,
    spend,
    spend_copy,
    spend_deep,
    spend_text,
    walked,
)
from bytepair_engine.chat.templates.filters import FILTERS, TESTS
from bytepair_engine.chat.templates.format_strings import filled, percent
from bytepair_engine.chat.templates.traced import Traced, added, joined, text

#: Maximum size of a computed integer in bits.
MAX_INTEGER_BITS: Final = 128

_STRING_METHODS: Final = frozenset({
    "capitalize", "casefold", "center", "count", "endswith", "find", "format", "index", "isalnum",
    "isalpha", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper",
    "join", "ljust", "lower", "lstrip", "partition", "removeprefix", "removesuffix", "replace",
    "rfind", "rindex", "rjust", "rpartition", "rsplit", "rstrip", "split", "splitlines",
    "startswith", "strip", "swapcase", "title", "upper", "zfill",
})  # fmt: skip
_METHODS: Final[tuple[tuple[type, frozenset[str]], ...]] = (
    (dict, frozenset({"copy", "get", "items", "keys", "values"})),
    (list, frozenset({"copy", "count", "index"})),
    (tuple, frozenset({"count", "index"})),
    *((view, frozenset()) for view in VIEWS),
    (type, frozenset()),  # dict.update would change values of the request and of the operator
)
_REFUSED: Final = (
    nodes.Extends,
    nodes.Include,
    nodes.Import,
    nodes.FromImport,
    nodes.Block,
    nodes.ScopedEvalContextModifier,
)
#: Date directives that do not depend on the time of day or the locale.
_DATE_FORMAT: Final = re.compile(r"(?:[^%]|%-?[dmyYjbBaA%])*", re.DOTALL)


class _Namespace(Namespace):
    """A namespace whose text does not write its values, which would not be charged."""

    def __repr__(self) -> str:
        return "<Namespace>"


class NotGiven(Undefined):
    """A token that is not given. A template may test it; written as nothing, it would be missing
    from the chat."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._advice = (
            f"the template writes {name}, which is not given: add it to `variables`, as an empty "
            "text if the model has none"
        )

    def __str__(self) -> str:
        raise InvalidChat(None, "messages", "token_not_given", self._advice)


class _Generator(CodeGenerator):
    """Generates code in which constants are marked as text of the template."""

    environment: Environment

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(self.environment.constant(node.value))
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Frame) -> None:
        del frame
        self.write(self.environment.constant(node.data))

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concatenated((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def start_write(self, frame: Frame, node: nodes.Node | None = None) -> None:
        super().start_write(frame, node)
        self.write("environment.written(")

    def end_write(self, frame: Frame) -> None:
        self.write(")")
        super().end_write(frame)

    def visit_Output(self, node: nodes.Output, frame: Frame) -> None:
        for child in node.nodes:
            self.start_write(frame, child)
            self.visit(child, frame)
            self.end_write(frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        self.write("(environment.compared(")
        self.visit(node.expr, frame)
        self.write(")")
        for operand in node.ops:
            self.visit(operand, frame)
        self.write(")")

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self.write("{")
        for item in node.items:
            self.write("environment.compared(")
            self.visit(item.key, frame)
            self.write("): ")
            self.visit(item.value, frame)
            self.write(", ")
        self.write("}")

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:
        self.write(f" {operators[node.op]} environment.compared(")
        self.visit(node.expr, frame)
        self.write(")")


class _Generation(Extension):
    """`{% generation %}` … `{% endgeneration %}`, which marks assistant text for training. Its
    content is rendered normally."""

    tags: Final = {"generation"}  # type: ignore[misc]

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


class Environment(ImmutableSandboxedEnvironment):
    """The environment of one template."""

    code_generator_class = _Generator
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self, entered: Callable[[Any], None], date: Callable[[], str]) -> None:
        """Create the environment with the settings of transformers.

        Args:
            entered: Called with each value of a loop, and with None after an outermost loop.
            date: Returns the date of the chat, such as "2026-11-23".
        """
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _Generation],
            optimized=False,
            cache_size=0,
        )
        self.filters = dict[str, Any](FILTERS)
        self.tests = dict[str, Any](TESTS)
        self.globals = {
            "namespace": _Namespace,
            "dict": dict,
            "cycler": Cycler,
            "joiner": Joiner,
            "range": _range,
            "raise_exception": _raise_exception,
            "strftime_now": self._strftime_now,
        }
        self.constants: list[Traced] = []
        self._indices: dict[str, int] = {}
        self._entered = entered
        self._date = date

    #: Joins the output of macros and blocks.
    concat = staticmethod(joined)

    def parsed(self, source: str) -> nodes.Template:
        """Parse a template, and add a call of `entered` to each loop.

        Raises:
            TemplateSyntaxError: The template is invalid or uses other templates.
        """
        tree = self.parse(source)
        for node in tree.find_all(_REFUSED):
            raise TemplateSyntaxError(
                "a chat template cannot have blocks, escape text or load other templates",
                node.lineno,
            )
        for loop in list(tree.find_all(nodes.For)):
            value = loop.target if isinstance(loop.target, nodes.Name) else None
            name: nodes.Expr = nodes.Const(None)
            if value is not None:
                name = nodes.Name(value.name, "load")
            loop.body.insert(0, _call("entered", name))
            if loop.test is not None:
                # Values that fail the test do not reach `entered`, so they are charged here.
                tested = nodes.Call(nodes.EnvironmentAttribute("tested"), [], [], None, None)
                loop.test = nodes.And(tested, loop.test)
        _mark_ends(tree)
        return tree

    def constant(self, value: str) -> str:
        """Return the code of a constant of the template."""
        index = self._indices.setdefault(value, len(self.constants))
        if index == len(self.constants):
            self.constants.append(Traced.constant(value))
        return f"environment.constants[{index}]"

    # Called by compiled templates.

    def concatenated(self, values: Iterable[Any]) -> str:
        """Return the result of the operator `~`."""
        return joined([text(value) for value in values])

    def written(self, value: Any) -> str:
        """Return the text that is written for a value."""
        result = text(value)
        spend_text(len(result))
        return result

    def compared(self, value: Any) -> Any:
        """Charge a comparison or search, and return the value."""
        if isinstance(value, SIZED):
            spend_deep(value)
        return value

    def entered(self, value: Any) -> None:
        """Charge and report the next value of a loop."""
        spend(1)
        self._entered(value)

    def tested(self) -> bool:
        """Charge the test of a loop for one value."""
        spend(1)
        return True

    def left(self, value: Any) -> None:
        """Report the end of an outermost loop."""
        del value
        self._entered(None)

    # Hooks of Jinja2.

    def getattr(self, obj: Any, attribute: str) -> Any:
        spend(1)
        if isinstance(obj, str):
            if attribute in _STRING_METHODS:
                spend(len(obj) >> 12)
                source = Traced.of(obj)
                if attribute == "format":
                    # By this name the sandbox would replace it by its own, which has no limits.
                    return MethodType(filled, source)
                return getattr(source, attribute)
            if hasattr(str, attribute):
                raise SecurityError("this method is not available in chat templates")
            return self.undefined(obj=obj, name=attribute)
        for kind, methods in _METHODS:
            if isinstance(obj, kind):
                if attribute in methods or attribute in getattr(obj, "_fields", ()):
                    return getattr(obj, attribute)
                if isinstance(obj, dict) and attribute in obj and not hasattr(obj, attribute):
                    return obj[attribute]
                return self.undefined(obj=obj, name=attribute)
        if obj is None or isinstance(obj, (int, float, bytes)):
            if hasattr(obj, attribute):
                raise SecurityError("this attribute is not available in chat templates")
            return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        spend(1)
        if isinstance(argument, tuple):
            spend_deep(argument)  # it is hashed
        elif isinstance(argument, slice):
            spend_copy(obj)
        elif isinstance(argument, str):
            spend_copy(argument)  # it is compared with a key
        try:
            if isinstance(obj, type):
                raise TypeError("a type has no items")  # dict[x] would keep x
            return obj[argument]
        except (AttributeError, TypeError, LookupError):
            if isinstance(argument, str):
                return self.getattr(obj, str(argument))
        return self.undefined(obj=obj, name=argument)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        with one_call():
            owner = getattr(obj, "__self__", None)
            if isinstance(owner, str):
                spend_text(len(owner))
            elif isinstance(owner, (list, tuple, range)):
                spend_deep(owner)
            elif isinstance(owner, (dict, LoopContext)):
                spend_deep(args)  # they are hashed or compared
                spend_copy(owner)
            elif owner is self or isinstance(obj, (Macro, LoopContext)):
                for arg in args:
                    spend_copy(arg)
            else:
                args = tuple(map(walked, args))  # a dictionary hashes them
            spend(len(args) + len(kwargs) >> 4)
            return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        spend(1)
        if isinstance(left, VIEWS) or isinstance(right, VIEWS):
            raise SecurityError("a difference of views would hash their values")
        if operator == "%" and isinstance(left, str):
            return percent(left, right)
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return added(left, right)
        if isinstance(left, int) and isinstance(right, int):
            spend((left.bit_length() + right.bit_length()) >> 7)
            _check_integers(operator, left, right)
        elif operator in ("+", "*"):
            for value, times in ((left, right), (right, left)):
                if isinstance(value, (list, tuple, str)):
                    count = max(times, 0) if operator == "*" and isinstance(times, int) else 1
                    spend(1 + len(value) * count)
            if operator == "*" and isinstance(left, str):
                left = Traced.of(left)
        return super().call_binop(context, operator, left, right)

    def _strftime_now(self, form: str) -> str:
        if not _DATE_FORMAT.fullmatch(form):
            raise InvalidChat(None, "messages", "template_reads_the_time")
        return datetime.fromisoformat(self._date()).strftime(str(form))


def _call(method: str, argument: nodes.Expr) -> nodes.ExprStmt:
    attribute = nodes.EnvironmentAttribute(method)
    return nodes.ExprStmt(nodes.Call(attribute, [argument], [], None, None))


def _mark_ends(node: nodes.Node) -> None:
    """Add a call of `left` after each outermost loop."""
    for field, value in node.iter_fields():
        if not isinstance(value, list):
            continue
        marked: list[Any] = []
        for item in value:
            marked.append(item)
            if isinstance(item, nodes.For):
                marked.append(_call("left", nodes.Const(None)))
            elif isinstance(item, nodes.Node) and not isinstance(item, nodes.Macro):
                _mark_ends(item)
        setattr(node, field, marked)


def _range(*bounds: int) -> range:
    result = range(*bounds)
    # `len` fails for a larger range.
    if result and abs(result[-1] - result[0]) // abs(result.step) >= 1 << 40:
        raise TemplateLimit("steps")
    spend(1 + len(result))
    return result


def _raise_exception(message: object = None) -> None:
    # The message may quote text of the chat.
    del message
    raise InvalidChat(None, "messages", "template_rejected")


def _check_integers(operator: str, left: int, right: int) -> None:
    bits = {
        "*": left.bit_length() + right.bit_length(),
        "**": left.bit_length() * max(right, 1),
    }.get(operator, 0)
    if bits > MAX_INTEGER_BITS:
        raise TemplateLimit("integer")
