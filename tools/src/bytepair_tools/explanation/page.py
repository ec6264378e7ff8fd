"""An explanation as one page of HTML that needs nothing else: no network, no font, no other file.

Its style and the code that draws tokens are the playground's, from `bytepair_engine.web`. The text
is anybody's: it is in the page as JSON in ASCII without "<", drawn as text nodes alone, and the
page's policy lets nothing run but the one script, and nothing be loaded.
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

#: Findings that are drawn; all are counted.
MOST_FINDINGS: Final = 300

#: Modules that become one need no word of each other.
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
    """The page.

    Args:
        encoding: What the text was encoded into.
        order_name: What the order of a token is: a rank, a priority or a score.
        text: The text; "" for none.
        pieces: Its tokens.
        derivations: Of each id in `pieces` and of `chosen`, once.
        chosen: The id of the token whose tree is shown first; None for the first token of several
            parts.
        inspection: What was found in the text; None if it was not looked for.
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
    """As `drawTree` of tree.js takes them."""
    return [
        [_base64(part.spelling), part.id, order_of(part, order_name), left, right]
        for part, left, right in flat(derivation.parts)
    ]


def _findings(text: str, inspection: Inspection) -> dict[str, Any]:
    """As `drawFindings` of findings.js takes them."""

    def utf16(place: int) -> int:
        return len(text[:place].encode("utf-16-le")) // 2

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
