"""Chat templates for tests, and their plain rendering by Jinja2, configured as in transformers."""

from __future__ import annotations

import json
from typing import Any, Final

from bytepair_engine import extend_encoding, get_encoding
from bytepair_engine.chat import Control
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

#: "<c>" is part of the tests' inputs, so that it becomes a control token if mistaken for the
#: template's.
ENCODING: Final = extend_encoding(
    get_encoding("r50k_base"), ["<c>", "<>", "<|im_start|>", "<|im_end|>"], name="t"
)

CHATML: Final = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
#: Tools, calls and macros, in the style of published templates.
TOOLS: Final = """\
{%- macro call(function) -%}
<tool_call>
{"name": "{{ function.name }}", "arguments": {{ function.arguments | tojson }}}
</tool_call>
{%- endmacro -%}
{%- if tools %}
<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}
    {%- set content = message.content | trim %}
    {{- '<|im_start|>' ~ message.role + '\\n' }}
    {%- if message.tool_calls %}
        {%- for one in message.tool_calls %}
            {{- '\\n' if not loop.first }}{{ call(one.function) }}
        {%- endfor %}
    {%- endif %}
    {{- content ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""


#: Templates that exceed their budget, each by another operation.
SPINNING: Final = (
    "{% for a in l %}{% for b in l %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l if false %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% set z = mixed[1:] %}{% endfor %}",
    "{% for a in l %}{% set z = mixed[5] %}{% endfor %}",
    "{% for a in l %}{% for c in mixed %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% set z = mixed.split('c') %}{% endfor %}",
    "{% for a in l %}{% set z = mixed[::-1] %}{% endfor %}",
    "{% for a in l %}{% set z = mixed | replace('c', x) %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = l[1:] %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% set z = l | list %}{% endfor %}",
    "{% for a in l %}{% set z = l | join %}{% endfor %}",
    "{% for a in l %}{% set z = ''.join(l) %}{% endfor %}",
    "{% for a in l %}{% set z = l | sort | unique | list %}{% endfor %}",
    "{% for a in l %}{% set z = x in r %}{% endfor %}",
    "{% for a in l %}{% set z = r.count(x) %}{% endfor %}",
    "{% for a in l %}{% set z = x in dict(a=l).values() %}{% endfor %}",
    "{% for a in l %}{% set z = dict([(1, l)]) %}{% endfor %}",
    "{% for a in l %}{% set z = cycler(*l) %}{% endfor %}",
    "{% macro f() %}{{ varargs[0] }}{% endmacro %}{% for a in l %}{{ f(*l) }}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = namespace(a=1) %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = '%5s %.3f' % (x, 1.5) %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = '{:>5}{}'.format(x, 1) %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{{ loop.index ~ x ~ loop.last }}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = 'a b c'.split() %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = messages | groupby('role') %}{% endfor %}"
    "{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = messages | tojson %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = n // 7 %}{% endfor %}{% endfor %}",
    "{% for a in l %}{% for b in l %}{% set z = n | string %}{% endfor %}{% endfor %}",
    "{{ 5 | round(-10**9) }}",
    "{{ 5 | round(10**9, 'ceil') }}",
    "{{ ('f' * 99999) | int(0, 16) }}",
)
#: The input of these operations: lists, a text in many parts of template and input, a long number.
SPUN: Final = (
    "{% set x = messages[0].content %}{% set l = [''] * 3000 %}{% set r = range(1000) %}"
    "{% set mixed = ([x] * 300) | join('<c>') %}{% set n = ('9' * 4000) | int %}"
)


def plain(template: str, messages: list[dict[str, Any]], **given: Any) -> str:
    """Return the rendering of Jinja2."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = lambda value, **how: json.dumps(
        value, ensure_ascii=False, **how
    )
    values: dict[str, Any] = {"messages": messages, "tools": None, "add_generation_prompt": True}
    return environment.from_string(template).render(**values | given)


def controls(segments: list[str | Control]) -> int:
    """Return the number of control tokens."""
    return sum(isinstance(segment, Control) for segment in segments)
