"""MkDocs hook: formulas become MathML when the site is built: pages need no script, no network."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_context: Any) -> str:  # noqa: ANN401
    """Replace every formula of a rendered page."""
    content = _INLINE.sub(lambda found: convert(html.unescape(found[1])), content)
    return _BLOCK.sub(
        lambda found: convert(html.unescape(found[1]).strip(), display="block"), content
    )
