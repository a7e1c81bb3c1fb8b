"""One page per command, from the command itself: what --help prints, as a page that can be linked and searched."""

from __future__ import annotations

import html
from typing import Any

import typer

from evenrank.cli.app import app

WHAT = "Arguments", "Options"


def _code(text: str) -> str:
    return f"`{text}`"


def _plain(text: str) -> str:
    """Words of a help text, with nothing that Markdown takes for its own."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return _code(parameter.name.upper() + ("…" if parameter.nargs != 1 else ""))
    return ", ".join(map(_code, parameter.opts + parameter.secondary_opts))


def _help(parameter: Any) -> str:
    text = _plain(parameter.help or "").replace("[default: ", "Default: ").replace("]", "")
    default = parameter.default
    shown = default is not None and not isinstance(default, bool) and not callable(default)
    if shown and str(default) and "Default: " not in text:
        text += f" Default: `{default}`."
    if parameter.required:
        text += " Required."
    return text


def _command(name: str, command: Any) -> str:
    paragraphs = [_plain(part) for part in (command.help or "").split("\n\n")]
    lines = [f"# evenrank {name}", "", "\n\n".join(paragraphs), ""]
    usage = " ".join(_names(one).strip("`") for one in command.params if one.param_type_name == "argument")
    lines += ["```text", f"evenrank {name} {usage} [options]".replace("  ", " "), "```", ""]
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if getattr(parameter, "hidden", False):
            continue
        kind = WHAT[parameter.param_type_name == "option"]
        panels.setdefault(getattr(parameter, "rich_help_panel", None) or kind, []).append(parameter)
    for panel, parameters in panels.items():
        lines += [f"## {panel}", ""]
        for parameter in parameters:
            lines += [_names(parameter), f": {_help(parameter)}", ""]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    commands = typer.main.get_command(app).commands
    first = {name: _plain(one.help.partition("\n\n")[0]) for name, one in commands.items()}
    rows = "\n".join(f"| [`evenrank {name}`]({name}.md) | {words} |" for name, words in first.items())
    names = "\n".join(commands)
    index = (
        "# The command line\n\nMade from the program when this site was built. "
        "`evenrank COMMAND --help` prints the same.\n\n"
        f"| command | what it does |\n|---|---|\n{rows}\n\n"
        "Columns are `qid, item, relevance, group, score` unless you name others. `--json` prints results for "
        "machines; [the schemas](/generated/schemas.md) say what is in them. Exit codes: 0; 1 if a limit that you set "
        "is broken (`--fail-over`, an alert of the monitor); 2 with one line for every error "
        "([more](/files.md#what-is-written)).\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )
    return {"cli/index.md": index} | {f"cli/{name}.md": _command(name, one) for name, one in commands.items()}
