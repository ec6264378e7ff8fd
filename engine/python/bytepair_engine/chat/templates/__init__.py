"""Custom chat templates, rendered with provenance. They need Jinja2: install the extra `templates`.

>>> from bytepair_engine import get_encoding
>>> from bytepair_engine.chat import encode_chat
>>> template = "{% for message in messages %}{{ message.content ~ '<|end|>' }}{% endfor %}"
>>> chat = [{"role": "user", "content": "hi<|end|>"}]
>>> encode_chat(
...     chat,
...     encoding=get_encoding("o200k_harmony"),
...     format=TemplateFormat("mine", template),
...     disallowed_special=(),
... ).segments
['hi<|end|>', Control('<|end|>')]
"""

from bytepair_engine.chat.templates.file import load_template
from bytepair_engine.chat.templates.format import TemplateFormat

__all__ = ["TemplateFormat", "load_template"]
