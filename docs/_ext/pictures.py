"""A picture in both themes with one caption: ``:::{picture} report.png`` shows report-light.png or report-dark.png."""

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
    }

    def run(self) -> list[nodes.Node]:
        name, _, ending = self.arguments[0].rpartition(".")
        figure = nodes.figure(classes=["picture", *self.options.get("class", [])])
        for theme in ("light", "dark"):
            image = nodes.image(uri=f"/pictures/{name}-{theme}.{ending}", alt=self.options["alt"])
            image["classes"] = [f"only-{theme}"]
            target = self.options.get("target")
            if target:
                image["classes"] = []
                link = nodes.reference("", "", image, refuri=target, internal=False)
                link["classes"] = [f"only-{theme}", "shown"]
                figure += link
            else:
                figure += image
        if self.content:
            inner = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, inner)
            figure += nodes.caption("", "", *inner.children[0].children)
        return [figure]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
