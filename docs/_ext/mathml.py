"""Formulas as MathML, made when the site is built: browsers draw it without a script, a font or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.errors import SphinxError


def _mathml(node: nodes.Node, *, block: bool) -> str:
    text = node.astext()
    try:
        return latex2mathml.tex2mathml(text, as_block=block)
    except MathError as error:
        raise SphinxError(f"{node.source}: the formula {text!r} cannot be drawn: {error}") from error


def inline(self: Any, node: nodes.Node) -> None:
    self.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def display(self: Any, node: nodes.Node) -> None:
    self.body.append(f'<div class="formula" tabindex="0">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
