"""A picture in both themes with one caption: ``:::{picture} report.png`` shows report-light.png or report-dark.png.

With ``:phone: report-phone.png`` narrow screens get that one instead.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective


class Picture(SphinxDirective):
    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {
        "alt": directives.unchanged_required,
        "target": directives.uri,
        "class": directives.class_option,
        "phone": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        figure = nodes.figure(classes=["picture", *self.options.get("class", [])])
        phone = self.options.get("phone")
        for file, width in ((self.arguments[0], "only-wide" if phone else ""), (phone, "only-phone")):
            for theme in ("light", "dark") if file else ():
                figure += self._image(file, theme, [f"only-{theme}", width] if width else [f"only-{theme}"])
        if self.content:
            inner = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, inner)
            figure += nodes.caption("", "", *inner.children[0].children)
        return [figure]

    def _image(self, file: str, theme: str, classes: list[str]) -> nodes.Node:
        name, _, ending = file.rpartition(".")
        image = nodes.image(uri=f"/pictures/{name}-{theme}.{ending}", alt=self.options["alt"])
        target = self.options.get("target")
        if not target:
            image["classes"] = classes
            return image
        link = nodes.reference("", "", image, refuri=target, internal=False)
        link["classes"] = [*classes, "shown"]
        return link


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
