"""Write an explanation as a self-contained HTML page: no network, fonts or other files.

Its CSS and the code that draws tokens are those of the playground, from `bytepair_engine.web`. The
text is untrusted: the page contains it as ASCII JSON without "<", and draws it only as text nodes.
The page's content security policy allows only its own script, and no loading.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from bytepair_engine import Encoding
from bytepair_engine.context.inspecting import Inspection
from bytepair_engine.pipeline.derivation import flat
from bytepair_engine.pipeline.describing import Description
from bytepair_engine.web import ASSETS

from bytepair_tools.explanation.explanation import Piece, order_of, shown_order
from bytepair_tools.shared.visible import visible

#: Maximum number of findings drawn; all are counted.
MAX_FINDINGS: Final = 300

#: Imports and exports, which are removed when modules are joined to one script.
_IMPORT: Final = re.compile(r"^import \{[^}]*\} from \"\./[\w.]+\";\n|^export (?=\w)", re.MULTILINE)


def page(
    encoding: Encoding,
    order_name: str,
    text: str,
    pieces: Sequence[Piece],
    derivations: Sequence[Description],
    chosen: int | None,
    inspection: Inspection | None,
) -> str:
    """Return the page.

    Args:
        encoding: The encoding.
        order_name: The meaning of a token's order: "rank", "priority" or "score".
        text: The text; "" for none.
        pieces: The tokens of the text.
        derivations: The descriptions of each id in `pieces` and of `chosen`, without duplicates.
        chosen: The id of the token whose tree is shown first; None for the first token that is
            merged.
        inspection: The inspection of the text; None if there is none.
    """
    if chosen is None:
        chosen = next((d.id for d in derivations if len(d.data) > 1 and d.parts), None)
    data = {
        "encoding": visible(encoding.name),
        "fingerprint": encoding.fingerprint,
        "order": order_name,
        "special": [{"id": p.id, "token": ""} for p in pieces if p.kind == "special"],
        "tokens": [_token(piece) for piece in pieces],
        "trees": {d.id: _parts(d, order_name) for d in derivations},
        "chosen": chosen,
        "text": text,
        "findings": None if inspection is None else _findings(text, inspection),
    }
    style = ASSETS["tokens.css"].decode()
    modules = [content for name, content in ASSETS.items() if name.endswith(".js")]
    own = (resources.files(__package__) / "page.js").read_bytes()
    script = _IMPORT.sub("", b"".join([*modules, own]).decode())
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "data": json.dumps(data).replace("<", "\\u003c"),
    }
    template = (resources.files(__package__) / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda match: parts[match[1]], template)


def _source(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _token(piece: Piece) -> dict[str, Any]:
    return {
        "id": piece.id,
        "start": piece.start,
        "data": _base64(piece.data),
        "kind": piece.kind,
        "order": shown_order(piece.order),
    }


def _parts(derivation: Description, order_name: str) -> list[list[Any]]:
    """Return the parts in the format of `drawTree` in tree.js."""
    return [
        [_base64(part.spelling), part.id, order_of(part, order_name), left, right]
        for part, left, right in flat(derivation.parts)
    ]


def _findings(text: str, inspection: Inspection) -> dict[str, Any]:
    """Return the findings in the format of `drawFindings` in findings.js."""

    def utf16(position: int) -> int:
        return len(text[:position].encode("utf-16-le")) // 2

    return {
        "findings": [
            {
                "start": utf16(finding.start),
                "end": utf16(finding.end),
                "code": finding.code.name,
                "tokenId": finding.token_id,
                "token": finding.token,
                "codePoint": finding.code_point,
            }
            for finding in inspection.findings
        ],
        "total": sum(inspection.totals.values()),
        "count": inspection.count,
        "stableTokens": inspection.stable_tokens,
        "stableEnd": utf16(inspection.stable_end),
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
