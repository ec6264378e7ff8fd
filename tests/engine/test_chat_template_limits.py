"""Chat templates that exceed their budget are stopped, whatever operation uses it up."""

from __future__ import annotations

import pytest
from bytepair_engine import get_encoding
from bytepair_engine.chat import TemplateLimit, encode_chat
from bytepair_engine.chat.templates import TemplateFormat
from support.chat_templates import SPINNING, SPUN


def rendered(template: str, content: str = "a<c> b<c>c") -> None:
    chat = [{"role": "user", "content": content}]
    encode_chat(chat, encoding=get_encoding("o200k_base"), format=TemplateFormat("mine", template))


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 10**9 }}",
        "{{ messages[0].content * 10**9 }}",
        "{{ [1] * 10**9 }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ range(10**30) }}",
        "{{ 'x' | center(10**9) }}",
        "{{ 'x'.ljust(10**9) }}",
        "{{ '1'.zfill(10**9) }}",
        "{{ '%1000000000s' % 'x' }}",
        "{{ '%.1000000000f' | format(1.0) }}",
        "{{ '{:1000000000}'.format('x') }}",
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
                "{{ {n.x: 1} | length }}",
                "{{ {}[n.x] }}",
                "{{ {}.get(n.x) }}",
                "{{ n.x in [n.y] }}",
                "{{ [n.x, n.y] | sort | length }}",
                "{{ [n.x, n.y] | select('equalto', n.y) | list }}",
                "{% for i in [n.x, n.y] %}{{ loop.changed(i) }}{% endfor %}",
            )
        ),
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


@pytest.mark.slow
@pytest.mark.parametrize("template", SPINNING)
def test_each_operation_is_charged(template: str) -> None:
    with pytest.raises(TemplateLimit):
        rendered(SPUN + template)


#: Values that are long to read.
SIZED = "{% set x = messages[0].content %}{% set r = range(1000) %}{% set l = r | list %}"
LONG = "y" * 200_000


def used(operation: str) -> None:
    """Render a template that uses an operation more often than a text may be read."""
    loop = f"{{% for a in range(60) %}}{{% set z = {operation} %}}{{% endfor %}}"
    rendered(SIZED + loop, LONG)


@pytest.mark.parametrize(
    "operation",
    [
        *("x == x", "x in x", "x in r", "r == r", "l == l", "x in l", "l is eq(l)"),
        *("x ~ 'a'", "x + 'a'", "'%s' % x", "'{}'.format(x)", "[x, x] | join", "l + l"),
        *("x.split('z')", "x.count('z')", "x.startswith('y')", "x | length", "x | trim"),
        *("l.count(1)", "l.index(1)", "{'a': 1}.get(x)", "{x: 1}", "l | sort", "l | tojson"),
    ],
)
def test_an_operation_is_charged_by_the_size_of_what_it_reads(operation: str) -> None:
    used("a")  # the loop alone is within the budget
    with pytest.raises(TemplateLimit):
        used(operation)
