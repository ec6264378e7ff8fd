"""Chat templates for tests, and their plain rendering by Jinja2 as transformers sets it up."""

from __future__ import annotations

import json
from typing import Any, Final

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

CHATML: Final = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
#: Tools, calls and macros, in the manner of published templates.
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


def plain(template: str, messages: list[dict[str, Any]], **given: Any) -> str:
    """What Jinja2 writes."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = lambda value, **how: json.dumps(
        value, ensure_ascii=False, **how
    )
    values: dict[str, Any] = {"messages": messages, "tools": None, "add_generation_prompt": True}
    return environment.from_string(template).render(**values | given)
