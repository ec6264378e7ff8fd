"""Chat templates that exceed their budget are stopped, whatever operation uses it up."""

from __future__ import annotations

import pytest
from bytepair_engine import Cancelled, CancelScope, get_encoding
from bytepair_engine.chat import TemplateLimit, count_chat, encode_chat
from bytepair_engine.chat.templates import TemplateFormat
from bytepair_engine.chat.templates.budget import MAX_DEPTH, MAX_NESTING, MAX_STEPS
from support.chat_templates import SPINNING, SPUN


def rendered(template: str, content: str = "a<c> b<c>c") -> None:
    chat = [{"role": "user", "content": content}]
    encode_chat(chat, encoding=get_encoding("o200k_base"), format=TemplateFormat("mine", template))


@pytest.mark.slow
@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 10**15 }}",
        "{{ messages[0].content * 10**15 }}",
        "{{ [1] * 10**15 }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ range(10**30) }}",
        "{{ cycler(*range(2**39)) }}",
        "{{ 'x' | center(10**15) }}",
        "{{ 'x'.ljust(10**15) }}",
        "{{ '1'.zfill(10**15) }}",
        "{{ '%1000000000000000s' % 'x' }}",
        "{{ '%.1000000000f' | format(1.0) }}",
        "{{ '{:1000000000000000}'.format('x') }}",
        "{{ 'a' | indent(10**9) }}",
        "{{ messages | tojson(indent=10**9) }}",
        "{{ 10**100000 }}",
        "{% set n=namespace(x=3) %}{% for i in range(60) %}{% set n.x=n.x * n.x %}{% endfor %}",
        "{% set n=namespace(x='ab') %}{% for i in range(60) %}{% set n.x=n.x ~ n.x %}{% endfor %}",
        "{% set n=namespace(x='ab') %}{% for i in range(60) %}{% set n.x=n.x + n.x %}{% endfor %}",
        "{% set n=namespace(x='a') %}{% for i in range(60) %}"
        "{% set n.x=n.x.replace('a', 'aa') %}{% endfor %}",
        "{% set n=namespace(x=[1]) %}{% for i in range(60) %}{% set n.x=n.x + n.x %}{% endfor %}",
        "{% set n=namespace(x=[1]) %}{% for i in range(60) %}{% set n.x=[n.x, n.x] %}{% endfor %}"
        "{{ n.x }}",
        "{% set n=namespace(x=[1]) %}{% for i in range(60) %}{% set n.x=[n.x, n.x] %}{% endfor %}"
        "{{ n.x | tojson }}",
        "{% set n=namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}"
        "{% set n.y = [n.y, n.y] %}{% endfor %}{{ n.x == n.y }}",
        *(
            "{% set n=namespace(x=(1,), y=(1,)) %}{% for i in range(60) %}{% set n.x=(n.x, n.x) %}"
            "{% set n.y=(n.y, n.y) %}{% endfor %}" + use
            for use in (
                "{{ '%r' % (n.x,) }}",
                "{{ '{}'.format(n.x) }}",
                "{{ {n.x: 1} | length }}",
                "{{ {}[n.x] }}",
                "{{ {}.get(n.x) }}",
                "{{ n.x in [n.y] }}",
                "{{ [n.x, n.y] | sort | length }}",
                "{{ [n.x, n.y] | select('equalto', n.y) | list }}",
                "{% for i in [n.x, n.y] %}{{ loop.changed(i) }}{% endfor %}",
            )
        ),
        *(
            "{% set n=namespace(x=(1,), y=(1,)) %}{% for i in range(22) %}{% set n.x=(n.x, n.x) %}"
            "{% set n.y=(n.y, n.y) %}{% endfor %}" + use
            for use in (
                "{{ n.x is lower }}",
                "{{ n.x is upper }}",
                "{{ n.x is filter }}",
                "{{ n.x is test }}",
                "{{ [1] | map(n.x) | list }}",
                "{{ 1 | round(2, n.x) }}",
                "{{ 1 | round(2, method=n.x) }}",
                "{{ [{}] | join(attribute=n.x) }}",
                "{{ {'a': n.x}.values() }}",
                "{{ {'a': n.x}.items() | list }}",
                "{% call dict(a=n.x) %}{% endcall %}",
                "{{ {'a': n.x}.values() | unique | list | length }}",
                "{{ [n.x] | select | unique | list | length }}",
                "{{ [n.x, n.y] | select | sort | length }}",
                "{% for i in [n.x, n.y] %}{{ loop | unique | list | length }}{% endfor %}",
                "{{ dict([(n.x, 1)]) | length }}",
                "{{ dict([(n.x, 1)] | select) | length }}",
                "{{ {}.get(n.x) }}",
            )
        ),
        "{% macro f() %}{{ kwargs.a }}{% endmacro %}{% set d=dict("
        + ",".join(f"k{i}=1" for i in range(1000))
        + ") %}{% for i in range(300) %}{{ f(**d) }}{% endfor %}",
        "{{ [1] | tojson(separators=(' ' * 20, ':')) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(50) }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
        "{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in [[1]] recursive %}{{ loop([[1], [1]]) }}{% endfor %}",
        "{{ ('x' * 9999).split('x') * 999 }}",
        "{% for i in range(9999) %}{{ ('y' * 9999).count('z') }}{% endfor %}",
    ],
)
def test_a_template_over_its_budget_is_stopped(template: str) -> None:
    with pytest.raises(TemplateLimit):
        rendered(template)


def test_the_steps_of_a_large_chat_have_a_maximum() -> None:
    tool = {"name": "f", "parameters": {"enum": [1] * (MAX_STEPS // 25)}}

    def render(steps: int) -> None:
        chosen = TemplateFormat("mine", f"{{{{ (range({steps}), tools) | length }}}}")
        count_chat([], encoding=get_encoding("o200k_base"), format=chosen, tools=[tool])

    render(MAX_STEPS - 100)
    with pytest.raises(TemplateLimit):
        render(MAX_STEPS)


def test_a_rendering_can_be_cancelled_before_its_budget_is_used_up() -> None:
    with CancelScope(0), pytest.raises(Cancelled):
        rendered(SPUN + SPINNING[0])


@pytest.mark.parametrize(
    ("fits", "more"),
    [
        ("messages | tojson(indent=16)", "messages | tojson(indent=17)"),
        ("messages | tojson(indent=none)", "messages | tojson(indent=' ')"),
        ("[1] | tojson(separators=(' ' * 16, ':'))", "[1] | tojson(separators=(' ' * 17, ':'))"),
        ("'a' | indent(1000)", "'a' | indent(1001)"),
    ],
)
def test_the_width_that_a_filter_writes_is_limited(fits: str, more: str) -> None:
    rendered("{{ " + fits + " }}")
    with pytest.raises(TemplateLimit, match="width"):
        rendered("{{ " + more + " }}")


@pytest.mark.parametrize("test", ["odd", "even", "divisibleby(3)"])
def test_a_text_that_a_test_formats_is_within_the_limit_of_width(test: str) -> None:
    template = f"{{{{ messages[0].content is {test} }}}}"
    rendered(template, "%1000d")
    with pytest.raises(TemplateLimit, match="width"):
        rendered(template, "%1001d")


def test_the_depth_of_calls_is_limited() -> None:
    """Of calls within calls; those after each other are no deeper."""
    deep = "{{% macro f(n) %}}{{{{ f(n - 1) if n > 1 }}}}{{% endmacro %}}{{{{ f({}) }}}}"
    rendered(deep.format(MAX_DEPTH))
    rendered(deep.format(1) * (2 * MAX_DEPTH))
    with pytest.raises(TemplateLimit, match="depth"):
        rendered(deep.format(MAX_DEPTH + 1))


@pytest.mark.parametrize("use", ["{{ {n.x: 1}[n.x] }}", "{{ n.x }}", "{{ n.x | tojson }}"])
def test_the_nesting_of_a_value_is_limited(use: str) -> None:
    """Hashing tuples that are nested a million times would end the process."""
    nested = "{{% set n = namespace(x=()) %}}{{% for i in range({}) %}}{{% set n.x = (n.x,) %}}"
    nested += "{{% endfor %}}" + use.replace("{", "{{").replace("}", "}}")
    rendered(nested.format(MAX_NESTING - 1))
    with pytest.raises(TemplateLimit, match="depth"):
        rendered(nested.format(MAX_NESTING))


def test_the_text_of_a_namespace_does_not_have_its_values() -> None:
    chat = [{"role": "user", "content": "x"}]
    chosen = TemplateFormat("mine", "{{ namespace(a=messages[0].content) }}")
    encoding = get_encoding("o200k_base")
    assert encode_chat(chat, encoding=encoding, format=chosen).segments == ["<Namespace>"]


@pytest.mark.parametrize(
    ("depth", "values", "fits"), [(3, 9999, True), (60, 99, True), (60, 9999, False)]
)
def test_the_indentation_of_json_is_limited(depth: int, values: int, fits: bool) -> None:
    value = [1] * values
    for _ in range(depth):
        value = [value]  # type: ignore[list-item]
    tool = {"name": "f", "parameters": {"a": value}}
    chat = [{"role": "user", "content": ""}]

    def count(template: str) -> int:
        chosen = TemplateFormat("mine", template)
        encoding = get_encoding("o200k_base")
        return count_chat(chat, encoding=encoding, format=chosen, tools=[tool]).count

    assert count("{{ tools | tojson }}")
    if fits:
        assert count("{{ tools | tojson(indent=4) }}")
    else:
        with pytest.raises(TemplateLimit, match="width"):
            count("{{ tools | tojson(indent=4) }}")


@pytest.mark.slow
@pytest.mark.parametrize("template", SPINNING)
def test_each_operation_is_charged(template: str) -> None:
    with pytest.raises(TemplateLimit):
        rendered(SPUN + template)


#: Values that are long to read.
SIZED = (
    "{% set x = messages[0].content %}{% set r = range(1000) %}{% set l = r | list %}"
    "{% set e = [''] * 2000 %}{% set m = ([x[:1]] * 2000) | join('b') %}"
)
LONG = "y" * 200_000


def used(operation: str, times: int = 60) -> None:
    """Render a template that uses an operation: 60 times is more than a text may be read."""
    loop = f"{{% for a in range({times}) %}}{{% set z = {operation} %}}{{% endfor %}}"
    rendered(SIZED + loop, LONG)


@pytest.mark.slow
@pytest.mark.parametrize(
    "operation",
    [
        *("x == x", "x in x", "x in r", "r == r", "l == l", "x in l", "l is eq(l)"),
        *("x ~ 'a'", "x + 'a'", "'%s' % x", "'{}'.format(x)", "[x, x] | join", "l + l"),
        *("x.split('z')", "x.count('z')", "x.startswith('y')", "x | length", "x | trim"),
        *("x.upper | string", "x | replace('', x)", "''.join(e)", "m[1:]"),
        *("[] | unique(attribute=x) | list", "[] | groupby(attribute=x)", "l.count(1)"),
        *("l.index(1)", "{'a': 1}.get(x)", "{x: 1}", "l | sort", "l | tojson"),
    ],
)
def test_an_operation_is_charged_by_the_size_of_what_it_reads(operation: str) -> None:
    used("a")  # the loop alone is within the budget
    with pytest.raises(TemplateLimit):
        used(operation)


@pytest.mark.parametrize(
    "operation",
    [
        *("x | select('none')", "x | reject('string')", "x | selectattr(none, 'none')"),
        "x | rejectattr(none, 'string')",
    ],
)
def test_values_that_a_filter_drops_are_charged(operation: str) -> None:
    used(operation, 10)  # not yet filtered
    with pytest.raises(TemplateLimit):
        used(operation + " | list", 10)


def test_a_lookup_is_charged_by_the_size_of_the_key() -> None:
    key = "{% set d = {messages[0].content ~ '': 1} %}{% set x = messages[0].content %}"
    for name, times in (("x", 10), ("'x'", 60)):
        rendered(key + f"{{% for a in range({times}) %}}{{{{ d[{name}] }}}}{{% endfor %}}", LONG)
    with pytest.raises(TemplateLimit):
        rendered(key + "{% for a in range(60) %}{{ d[x] }}{% endfor %}", LONG)


@pytest.mark.parametrize(
    ("text", "operation"), [("%%", "x % ()"), ("{{", "x.format()"), ("{0}", "x.format('')")]
)
def test_fields_are_charged_before_the_end_of_the_format_is_read(text: str, operation: str) -> None:
    template = "{% set x = messages[0].content %}{% set z = " + operation + " %}"
    rendered(template, text * 1000)
    with pytest.raises(TemplateLimit):  # not InvalidChat for the end
        rendered(template, text * 40_000 + text[0])


def test_the_words_of_a_title_are_charged() -> None:
    template = "{% set x = messages[0].content %}{% set z = x | title %}"
    rendered(template, "a " * 20_000)
    with pytest.raises(TemplateLimit):
        rendered(template * 60, "a " * 20_000)


@pytest.mark.parametrize(
    "operation",
    [
        *("x.strip(y)", "x.lstrip(y)", "x.rstrip(y)", "x.rsplit(y, 1)", "x.rpartition(y)"),
        *("x.rfind(y)", "x.rindex(y)", "x | trim(y)"),
    ],
)
def test_a_search_is_charged_by_the_product_of_both_sizes(operation: str) -> None:
    used(operation.replace("(y", "('y'"), 5)
    with pytest.raises(TemplateLimit):
        used(operation.replace("(y", "(x"), 5)


def test_an_empty_text_is_repeated_within_the_budget() -> None:
    rendered("{{ messages[0].content * 10**15 }}", "")
    with pytest.raises(TemplateLimit):  # one character, but many parts
        rendered("{{ ('a' ~ ([messages[0].content] * 3000) | join) * 10000 }}", "")


def test_what_is_written_is_charged_by_its_size() -> None:
    loops = "{% for a in range(60) %}{% for m in messages %}{{ f(m) }}{% endfor %}{% endfor %}"
    rendered("{% macro f(m) %}{% endmacro %}" + loops, LONG)  # which reads no text
    with pytest.raises(TemplateLimit):
        rendered("{% for a in range(60) %}{{ messages[0].content }}{% endfor %}", LONG)
