"""Read the post-processor of a tokenizer.json: the special tokens around a text."""

from __future__ import annotations

from bytepair_engine.formats.json_file import Node
from bytepair_engine.formats.tokenizer_json_steps import flattened
from bytepair_engine.pipeline.definition import NO_TEMPLATE, Template

_KNOWN = "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, Sequence"


def read_template(node: Node | None) -> Template:
    """Read the template for a single text from the member `post_processor`.

    Raises:
        VocabularyError: A processor is unknown, its template is not one text between special
            tokens, or it follows another processor with a template.
    """
    template = NO_TEMPLATE
    for step in flattened(node, "processors"):
        frame = _frame(step)
        if template and frame is not None:
            # `tokenizers` treats the result of the first one as several texts, with other rules.
            step.reject("it follows another post-processor with a template")
        template = template if frame is None else frame
    return template


def _frame(node: Node) -> Template | None:
    kind = node["type"].a(str)
    if kind == "ByteLevel":
        return None  # it only changes offsets
    if kind in ("BertProcessing", "RobertaProcessing"):
        return Template(_pair(node["cls"]), _pair(node["sep"]))
    if kind != "TemplateProcessing":
        node.reject(f"the post-processor {kind!r} is not supported; supported are {_KNOWN}")
    return _template(node)


def _pair(node: Node) -> tuple[int, ...]:
    members = node.items()
    if len(members) != 2:
        node.reject("it must be a token and its id")
    return (members[1].a(int),)


def _template(node: Node) -> Template:
    ids: list[list[int]] = [[]]
    for member in node["single"].items():
        sequence, special = member.get("Sequence"), member.get("SpecialToken")
        if sequence is not None:
            if sequence["id"].value != "A":
                sequence.reject("the template of a single text contains a sequence other than A")
            ids.append([])
        elif special is not None:
            name = special["id"].a(str)
            ids[-1] += [i.a(int) for i in node["special_tokens"][name]["ids"].items()]
        else:
            member.reject("it is neither a Sequence nor a SpecialToken")
    if len(ids) != 2:
        node["single"].reject(f"it contains the text {len(ids) - 1} times instead of once")
    return Template(tuple(ids[0]), tuple(ids[1]))
