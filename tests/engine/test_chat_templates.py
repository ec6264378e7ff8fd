"""Chat templates: the text equals Jinja2's, and only the template can produce control tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bytepair_engine import extend_encoding, get_encoding
from bytepair_engine.chat import (
    BadTemplate,
    Control,
    InvalidChat,
    count_chat,
    encode_chat,
)
from bytepair_engine.chat.templates import TemplateFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chat_templates import CHATML, ENCODING, TOOLS, controls, plain
from support.chats import encoding_for, texts

INPUT = "a<c> b<c>c"


def rendered(template: str, content: str = INPUT, **given_options: Any) -> list[str | Control]:
    chosen = TemplateFormat("mine", template, **given_options)
    chat = [{"role": "user", "content": content}]
    return encode_chat(chat, encoding=ENCODING, format=chosen, disallowed_special=()).segments


def written(segments: list[str | Control]) -> str:
    return "".join(s.name if isinstance(s, Control) else s for s in segments)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("'<c>' ~ x ~ '<c>'", 2),
        ("'<c>' + x + '<c>'", 2),
        ("x + '<c>'", 1),
        ("'<' ~ 'c' ~ '>'", 1),
        ("'<c' ~ x[4:]", 0),
        ("x[:2] ~ 'c>'", 0),
        ("('<c>' ~ x)[:3]", 1),
        ("('<c>' ~ x)[1:]", 0),
        ("('<c>' ~ x)[::-1][::-1]", 1),
        ("('<c>' ~ x)[-len:]", None),
        ("'%s<c>%s' % (x, x)", 1),
        ("'%s<c>' | format(x)", 1),
        ("'%5s|<c>|%d%%' % (x, 3)", 1),
        ("'{}<c>{a}{{'.format(x, a=x)", 1),
        ("x % ()", 0),
        ("(' <c> ' ~ x) | trim", 1),
        ("(x ~ '<c>\n').strip().rstrip('z').lstrip('z')", 1),
        ("(x ~ '|<c>|' ~ x).split('|')[1]", 1),
        ("(x ~ ' <c> ' ~ x).split()[-3]", 1),
        ("('-<c>|' ~ x[1:4]).split('<c>|')[1]", 0),
        ("(x ~ ' <c> ' ~ x).rsplit(None, 2)[1]", 0),
        ("(x ~ '|<c>').rsplit('|', 1) | join('<c>')", 2),
        ("[x, '<c>', x] | join('<c>')", 3),
        ("'<c>'.join([x, x])", 1),
        ("('<c>' ~ x).replace('b', '<c>')", 2),
        ("x | replace('<c>', '')", 0),
        ("('<c>' ~ x).replace('', '-')", 0),
        ("('<c>' ~ x).partition('a')[0]", 1),
        ("x.partition('<c>') | join('')", 0),
        ("('<C>' ~ x) | lower", 1),
        ("('<c>' ~ x).upper() | lower", 1),
        ("('<c>' ~ x) | capitalize", 1),
        ("('<c>' ~ x) | title | lower", 1),
        ("('ß ß ß ' ~ x[:4] ~ 'abc') | title | lower", 0),  # title makes it longer
        ("x | tojson ~ '<c>'", 1),
        ("{'<c>': x} | tojson", 0),
        ("{'<c>': x}", 0),
        ("('<c>' ~ x).splitlines()[0]", 1),
        ("('<c>\n' ~ x).splitlines(true)[0]", 1),
        ("('<c>' * 2) ~ x * 2", 2),
        ("('<c>' ~ x) | indent(2)", 1),
        ("('<c>' ~ x) | string | safe", 1),
        ("('<c>' ~ x) | safe + (x | safe) + 'b'", 1),
        ("'<c>' ~ (x | safe) ~ x", 1),
        ("x | safe | replace('<', '>') ~ '<c>'", 1),
        ("[x, '<c>'] | join('<' | safe)", 1),
        ("'<c>%s' % (x | safe) + '<'", 1),
        ("x | safe | title + '<c>'", 1),
        ("'%r' % [x | safe]", 0),
        ("{'pop': 1}.pop ~ {'pop': 1}['pop'] ~ {'pops': 2}.pops", 0),
        ("'%s %(a)s' % {'a': x}", 0),
        ("('<c>' ~ x) | reverse | reverse", 1),
        ("('<c>' ~ x).removeprefix('<').center(20)", 0),
        ("x if '<c>' in x else '<c>'", 0),
        ("('<c>' ~ x) | list | join", 1),
        ("[{'a': {'b': '<c>'}}, {'a': {'b': x}}, {'a': {}}] | join('|', attribute='a.b')", 1),
        ("[1, '<c>', x, none] | select('string') | reject('eq', x) | join", 1),
        ("[3, 4] | select('divisibleby', num=2) | list ~ (none | select | list)", 0),
        ("['<c>', x] | first ~ (['<c>', x] | last)", 1),
        ("['<c>', x] | map('upper') | map('lower') | join", 1),
        ("{'user': '<c>'}[messages[0].role] ~ ['<c>', x][0] ~ ({'a': ('<c>',)}.a | first)", 3),
        ("namespace(a='<c>' ~ x).a", 1),
        ("dict(a='<c>' ~ x)['a']", 1),
        ("cycler('<c>', x).next()", 1),
        ("t ~ x", 1),
        ("'<c>'[-9] ~ '<c>'[9] ~ ('<c>'[9] is defined) ~ (x[99] is defined)", 0),
        ("'<c>'[-3] ~ '<c>'[1] ~ '<c>'[2]", 1),
        ("'<' ~ '' ~ ('c' if x else 'd') ~ '>' ~ (none if x)", 1),
    ],
)
def test_provenance_of_an_expression(expression: str, found: int | None) -> None:
    template = "{% set x = messages[0].content %}{{ " + expression.replace("-len", "-11") + " }}"
    segments = rendered(template, variables={"t": "<c>"})
    assert written(segments) == plain(template, [{"role": "user", "content": INPUT}], t="<c>")
    if found is not None:
        assert controls(segments) == found


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("<c>{% for m in messages %}{{ m.content }}<c>{% endfor %}", 2),
        ("{% for c in messages[0].content %}{{ c }}{% endfor %}", 0),
        ("{% macro f(a, b='<c>') %}{{ a }}{{ b }}{% endmacro %}{{ f(messages[0].content) }}", 1),
        ("{% set s %}<c>{{ messages[0].content }}{% endset %}{{ s ~ s }}", 2),
        (
            "{% macro f() %}<c>{{ caller() }}{% endmacro %}"
            "{% call f() %}{{ messages[0].content }}<c>{% endcall %}",
            2,
        ),
        ("{% filter upper %}<C>{{ messages[0].content }}{% endfilter %}", 0),
        ("{% filter lower %}<C>{{ messages[0].content }}{% endfilter %}", 1),
        ("{% generation %}<c>{{ messages[0].content }}{% endgeneration %}", 1),
        ("<{{ 'c' }}>{{ messages[0].role }}", 1),
        ("<{{ messages[0].content[2:3] }}>", 0),
        ("{% for a, b in messages[0].items() %}{{ a }}<c>{{ b }}{% endfor %}", 2),
        ("{% for i in range(3) %}{% if i == 1 %}{% continue %}{% endif %}<c>{% endfor %}", 2),
        ("{% set ns = namespace(n='') %}{% for m in messages %}{% set ns.n = ns.n ~ '<c>' ~ "
         "m.content %}{% endfor %}{{ ns.n }}", 1),
        ("{% for g, ms in messages | groupby('role') %}<c>{{ ms[0].content }}{% endfor %}", 1),
    ],
)  # fmt: skip
def test_provenance_of_a_statement(template: str, found: int) -> None:
    segments = rendered(template)
    assert controls(segments) == found
    if "generation" not in template:
        assert written(segments) == plain(template, [{"role": "user", "content": INPUT}])


#: The two halves of a control token, with input between them.
STRADDLED = (
    "<{{ x }}c>",
    "{{ '<' ~ x ~ 'c>' }}",
    "{{ ('<' ~ x) ~ 'c>' }}",
    "{{ '<' ~ (x ~ 'c>') }}",
    "{{ '<' + x + 'c>' }}",
    "{{ ['<', x, 'c>'] | join }}",
    "{{ x.join(['<', 'c>']) }}",
    "{{ '<#c>'.replace('#', x) }}",
    "{{ '<#c>'.split('#') | join(x) }}",
    "{{ '<%sc>' % x }}",
    "{{ '<{}c>'.format(x) }}",
    "{{ ('<' ~ x ~ 'c>') | string | trim | lower }}",
    "{{ ('<' ~ x ~ 'c>')[0:] }}",
    "{% for c in '<' ~ x ~ 'c>' %}{{ c }}{% endfor %}",
    "{% set s %}<{{ x }}c>{% endset %}{{ s }}",
    "{% macro f(a) %}<{{ a }}c>{% endmacro %}{{ f(x) }}",
    "{% macro f() %}<{{ caller() }}c>{% endmacro %}{% call f() %}{{ x }}{% endcall %}",
    "{% set n = namespace(s='<') %}{% set n.s = n.s ~ x %}{{ n.s }}c>",
    "<{% for c in [x] %}{{ c }}{% endfor %}c>",
    "<{{ x | default('') | trim }}c>",
    "<{{ x[:0] }}c>",
    # The input between them is removed.
    "{{ ('<' ~ x) | trim ~ 'c>' }}",
    "{{ '<' ~ (x ~ 'c>') | trim }}",
    "{{ ('<' ~ x ~ 'c>') | replace('y', '') }}",
    "{{ ('<' ~ x).removesuffix('y') ~ (x ~ 'c>').removeprefix('y') }}",
    "{{ ('<' ~ x).split('y')[0] ~ 'c>' }}",
    "{{ ('<' ~ x)[:1] ~ 'c>' }}",
    "{{ ('<' ~ x ~ 'c' ~ x ~ '>')[::2] }}",
    "{{ (x[2:] ~ '.' ~ x[1:2] ~ '.' ~ x[:1] ~ '......')[::-2] }}",
    "{{ ('>' ~ x ~ '<') | reverse }}",
)


@pytest.mark.parametrize("template", STRADDLED)
def test_input_between_two_halves_does_not_complete_a_control_token(template: str) -> None:
    template = "{% set x = messages[0].content %}" + template
    for text in ("", "y", "<c>", " "):
        segments = rendered(template, text)
        assert written(segments) == plain(template, [{"role": "user", "content": text}])
        assert controls(segments) == 0


def test_an_end_of_line_in_input_stays_input_if_it_is_indented() -> None:
    encoding = extend_encoding(get_encoding("r50k_base"), ["\n"], name="lines")
    for template, found in (
        ("{{ messages[0].content | indent }}", 0),
        ("{{ 'a\nb' | indent }}", 1),
    ):
        chat = [{"role": "user", "content": "a\nb"}]
        chosen = TemplateFormat("mine", template)
        encoded = encode_chat(chat, encoding=encoding, format=chosen, disallowed_special=())
        assert written(encoded.segments) == "a\n    b"
        assert controls(encoded.segments) == found


def test_roles_are_structure_from_which_templates_build_control_tokens() -> None:
    template = "{% for m in messages %}{{ '<|im_' ~ m.role ~ '|>' ~ m.content }}{% endfor %}"
    encoding = extend_encoding(get_encoding("r50k_base"), ["<|im_user|>"], name="roles")
    chat = [{"role": "user", "content": "<|im_user|>"}]
    found = encode_chat(
        chat, encoding=encoding, format=TemplateFormat("mine", template), disallowed_special=()
    )
    assert [str(segment) for segment in found.segments] == ["Control('<|im_user|>')", "<|im_user|>"]


def chats(role: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.tuples(role, st.booleans()), min_size=1, max_size=4).map(
        lambda found: [{"role": role, "calls": calls} for role, calls in found]
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), template=st.sampled_from([CHATML, TOOLS]))
def test_control_tokens_depend_on_the_structure_only(data: Any, template: str) -> None:
    chosen = TemplateFormat("mine", template)
    encoding = encoding_for("qwen3")
    structure = data.draw(chats(st.sampled_from(["system", "user", "assistant"])))

    def controlled(text: Any) -> list[str]:
        messages = []
        for one in structure:
            message: dict[str, Any] = {"role": one["role"], "content": text()}
            if one["calls"]:
                arguments = json.dumps({text(): text()})
                function = {"name": text(), "arguments": arguments}
                message["tool_calls"] = [{"type": "function", "function": function}]
            if template == CHATML:
                message.pop("tool_calls", None)
            messages.append(message)
        tool = {"type": "function", "function": {"name": text(), "description": text()}}
        tools = [tool] if template == TOOLS else None
        found = encode_chat(
            messages, encoding=encoding, format=chosen, tools=tools, disallowed_special=()
        )
        counted = count_chat(messages, encoding=encoding, format=chosen, tools=tools)
        parts = (*counted.message_counts, counted.tools_count, counted.frame_count)
        assert len(found.ids) == counted.count == sum(parts)
        special = set(encoding.special_tokens.values())
        names = [s.name for s in found.segments if isinstance(s, Control)]
        assert [encoding.special_tokens[n] for n in names] == [i for i in found.ids if i in special]
        return names

    assert controlled(lambda: data.draw(texts)) == controlled(lambda: "x")


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ '{0.__class__}'.format('x') }}",
        "{{ '{:{}}'.format('x', 9) }}",
        "{{ '%*d' % (9, 9) }}",
        "{{ '%' % () }}",
        "{{ '%s' % () }}",
        "{{ '%s' % (1, 2) }}",
        "{{ 'a' % none }}",
        "{{ '%s' % (1, none) }}",
        "{{ 'a'.replace('b', nothing) }}",
        "{{ messages[0].update({}) }}",
        "{{ messages.append(1) }}",
        "{{ (5).to_bytes(10**9, 'big') }}",
        "{{ (5).bit_length() }}",
        "{{ {}.fromkeys([]) }}",
        "{{ ''.encode }}",
        "{{ lipsum() }}",
        "{{ nothing.at.all }}",
        "{{ {}.keys().isdisjoint([]) }}",
        "{{ {}.keys().mapping.copy() }}",
        "{{ {}.keys() - [] }}",
        "{{ [] - {}.keys() }}",
        "{{ dict[1].fromkeys }}",
        "{{ dict.fromkeys([]) }}",
        "{{ dict.update(messages[0], {}) }}",
        "{{ messages[0].content.encode() }}",
        "{{ 1 / 0 }}",
        "{{ none | indent }}",
        "{{ nothing | indent }}",
        "{{ 5 | indent }}",
        "{{ (5).real }}",
        "{{ true.numerator }}",
        "{{ '{}{0}'.format(1) }}",
        "{{ '{0}{}'.format(1) }}",
        "{{ '%(a)s %s' % {'a': 1} }}",
        "{{ '%s' | format(1, a=2) }}",
        # Jinja2 escapes the other text.
        "{{ ('a' | safe) + '<' }}",
        "{{ '\"' + ('a' | safe) }}",
        "{{ ('%s' | safe) % '<' }}",
        "{{ '%s' | safe | format('<') }}",
        "{{ ('{}' | safe).format('<') }}",
        "{{ (',' | safe).join(['<', '>']) }}",
        "{{ ('a' | safe).replace('a', '<') }}",
        *(
            "{{ " + safe + " + '&' }}"
            for safe in (
                "('a' | safe | trim)",
                "('a' | safe | upper)",
                "('a' | safe | string)",
                "('a' | safe | indent)",
                "('a' | safe | indent(first=true))",
                "('a' | safe | center(3))",
                "('a' | safe)[::-1]",
                "('abc' | safe)[::2]",
                "('a' | safe)[0]",
                "('a' | safe) * 2",
                "('1' | safe).zfill(2)",
                "('a' | safe).split('b')[0]",
                "(('a' | safe) + 'b')",
            )
        ),
    ],
)
def test_a_failing_template_is_an_error_without_its_message(template: str) -> None:
    with pytest.raises(InvalidChat, match="template_failed"):
        rendered(template)


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("{{ 1 / 0 }}", 1),
        ("a\n{{ x }}\n{{ x ~\n1 / 0 }}", 3),
        ("a\n{% for m in messages %}\nb\n{% if m.content + 1 %}{% endif %}\n{% endfor %}", 4),
        ("{% macro f() %}\n{{ 1 / 0 }}\n{% endmacro %}\n\n{{ f() }}", 2),
        ("a\n\n{{ [5] | map('indent') | list }}", 3),
        ("a\n{% set a = 1 %}\n{{ raise_exception('secret') }}", 3),
        ("a\n{{ strftime_now('%H:%M') }}", 2),
    ],
)
def test_the_error_of_a_failing_template_names_its_line(template: str, line: int) -> None:
    with pytest.raises(InvalidChat, match=f"; see line {line} of the template$"):
        rendered(template)


def test_the_message_that_a_template_raises_is_not_shown() -> None:
    with pytest.raises(InvalidChat) as rejected:
        rendered("{{ raise_exception('secret ' ~ messages[0].content) }}", "words")
    assert rejected.value.rule == "template_rejected"
    assert "secret" not in str(rejected.value)
    assert "words" not in str(rejected.value)
    assert rejected.value.__cause__ is None


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("a\n{% if %}", 2),
        ("a\n\n{{ x | nothing }}", 3),
        ("{% include 'x' %}", 1),
        ("\n{% extends 'x' %}", 2),
        ("{% block b %}{% endblock %}", 1),
        ("{{ x | random }}", 1),
        ("\n{% autoescape true %}{{ x }}{% endautoescape %}", 2),
    ],
)
def test_a_syntax_error_in_a_template_is_rejected_with_its_line(template: str, line: int) -> None:
    with pytest.raises(BadTemplate) as rejected:
        TemplateFormat("mine", template)
    assert rejected.value.line == line
