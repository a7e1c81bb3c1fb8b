"""The pages' one template environment, and the frame that they share.

Templates in ``templates/`` turn data into HTML and escape every text. A page is one file with no right to load or run
anything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evenrank import __version__
from evenrank.errors import one_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True)
class Row:
    """One row of a table.

    Attributes
    ----------
    cells : sequence of str
        The first is the row's heading.
    attributes : mapping
        Those of its element.
    """

    cells: Sequence[str]
    attributes: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """A table of a page.

    Attributes
    ----------
    label : str
        For screen readers.
    head : sequence of str
        Names of the columns.
    rows : sequence of Row
        Its rows.
    words : int
        The number of columns, from the left, that hold text and not numbers.
    """

    label: str
    head: Sequence[str]
    rows: Sequence[Row]
    words: int = 1


def text_of(name: str) -> str:
    """Read a file of this package."""
    return files("evenrank.page").joinpath(name).read_text(encoding="utf-8")


def trusted(text: str) -> Markup:
    """Mark text that goes into a page as it is.

    Only files of this package, the charts' library and pictures that it drew may pass here, never text from data.
    """
    from markupsafe import Markup

    return Markup(text)


@cache
def environment() -> Environment:
    """Give the environment of all templates: every value is escaped and on one line, and a missing one is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("evenrank.page"),
        autoescape=True,
        finalize=_obeyed_by_none,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["own_file"] = lambda name: trusted(text_of(name))
    templates.globals["version"] = __version__
    # The filter tojson writes "<", ">", "&" and "'" as escapes of JSON, so no text can end the element it stands in.
    templates.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return templates


def _obeyed_by_none(value: Any) -> Any:
    """Write out what a terminal would obey in text; markup is this package's own."""
    return one_line(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def page(
    template: str, title: str, *, scripts: Sequence[str] = (), data: Mapping[str, Any] | None = None, **parts: Any
) -> str:
    """Render a whole page from a template that fills ``page.html``.

    The content security policy lets exactly these scripts run and nothing be fetched, so that text which slipped
    through as markup could still do nothing.

    Parameters
    ----------
    template : str
        Name of the file in ``templates/``.
    title : str
        The page's title.
    scripts : sequence of str
        Code of this project or of the charts' library.
    data : mapping of str to JSON values, optional
        What the scripts read, by the id of its element.
    **parts
        What else the template needs.

    Returns
    -------
    str
        HTML.
    """
    return (
        environment()
        .get_template(template)
        .render(
            title=title,
            scripts=list(map(trusted, scripts)),
            digests=list(map(_digest, scripts)),
            data=data or {},
            **parts,
        )
    )


def piece(template: str, **parts: Any) -> str:
    """Render what a notebook shows, from a template that fills ``piece.html``."""
    return environment().get_template(template).render(**parts)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
