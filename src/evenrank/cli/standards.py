"""`evenrank audit --standard`: the tables of a regulator's form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import evenrank as er
from evenrank.audits.standards import RATES, REDUCTIONS, BiasAudit
from evenrank.audits.standards.layout import table_rows
from evenrank.audits.workbook import made_rows, workbook
from evenrank.checks import choose
from evenrank.cli import audit_output, common, options
from evenrank.cli.spool import title_of
from evenrank.errors import ConfigError, one_line

STANDARDS = ("ll144",)
PANEL = "With --standard"

Standard = Annotated[
    str | None,
    typer.Option(
        "--standard",
        help="The tables that a regulation asks for instead: ll144 (New York City Local Law 144, applicants for jobs).",
        rich_help_panel=PANEL,
    ),
]
Sex = Annotated[str | None, typer.Option("--sex", help="Column of the sex; empty is unknown.", rich_help_panel=PANEL)]
Race = Annotated[
    str | None, typer.Option("--race", help="Column of race and ethnicity; empty is unknown.", rich_help_panel=PANEL)
]
Person = Annotated[
    str | None,
    typer.Option(
        "--person",
        help="Column that tells people apart.  [default: the item id; without one each row is a person]",
        rich_help_panel=PANEL,
    ),
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        help="selection: in the top --k of a list; scoring: above the median score of all.  [default: selection]",
        rich_help_panel=PANEL,
    ),
]
Reduce = Annotated[
    str | None,
    typer.Option(
        "--reduce",
        help="A person in several rows counts once, by the best one, or by their mean; or all rows count: "
        "best, mean, rows.  [default: best]",
        rich_help_panel=PANEL,
    ),
]
Unknown = Annotated[
    list[str] | None,
    typer.Option(
        "--unknown", help="Label that means an unknown category, beside 'unknown'; repeatable.", rich_help_panel=PANEL
    ),
]


@dataclass(frozen=True)
class Form:
    """What `evenrank audit` was asked for with --standard, as the options have it."""

    standard: str | None
    sex: str | None
    race: str | None
    person: str | None
    rate: str | None
    reduce: str | None
    unknown: list[str] | None

    def refuse_without_standard(self) -> None:
        """Refuse the options that are for --standard only, if there is none."""
        for name, value in vars(self).items():
            if value is not None:
                raise ConfigError(f"--{name} is for --standard only; got {_shown(value)}. Add --standard ll144.")

    def refuse(self, **others: Any) -> None:
        """Refuse the options that are not for --standard."""
        choose(self.standard, STANDARDS, what="--standard")
        for name, value in others.items():
            if value:
                raise ConfigError(
                    f"--{name.replace('_', '-')} is not for --standard {self.standard}; got {_shown(value)}. Leave it "
                    "out, or audit without --standard."
                )

    def audit(
        self, file: list[Path], settings: dict[str, Any], *, k: str | None, rank: str | None, **limits: float
    ) -> BiasAudit:
        """Read the rows and make the tables.

        Parameters
        ----------
        file : list of Path
            The rows.
        settings : dict
            How they are read, as in `er.read`.
        k : str or None
            The places that are selected, as it was written.
        rank : str or None
            The column of ranks, if scores are not known.
        **limits
            "min_share" and "confidence".
        """
        rate = choose(self.rate or "selection", RATES, what="--rate")
        reduce = choose(self.reduce or "best", REDUCTIONS, what="--reduce")
        cut = self._cut(rate, k)
        if rate == "scoring" and rank is not None:
            raise ConfigError(
                f"--rate scoring needs scores, and --rank {rank} has none: a median of ranks says nothing. Name a "
                "column with --score, or take --rate selection."
            )
        columns = {"sex": self.sex, "race": self.race, "person": self.person}
        named = [(role, column) for role, column in columns.items() if column is not None]
        if not self.sex and not self.race:
            raise ConfigError("--standard ll144 needs --sex COLUMN, --race COLUMN or both; got neither.")
        if self.sex == self.race:
            raise ConfigError(f"--sex and --race must be different columns; got {self.sex!r} for both.")
        data, labels = common.read_labelled_rows(
            file,
            named,
            {
                "score": "Name the right column with --score, or a column of ranks with --rank.",
                "query": "Name the right column with --query; applicants of one list have the same value in it.",
            },
            **settings,
            relevance=None,
            group=None,
        )
        scores = data.to_caller(data.column(settings["score"]))
        given = {role: {column: labels[column]} for role, column in named}
        return er.bias_audit(
            -scores if rank else scores,
            data,
            k=cut,
            rate=rate,
            reduce=reduce,
            unknown=self.unknown or (),
            min_share=limits["min_share"],
            confidence=limits["confidence"],
            **given,
        )

    def _cut(self, rate: str, k: str | None) -> int | None:
        """The one cut-off of a selection rate."""
        if rate == "scoring":
            if k is not None:
                raise ConfigError(f"--k is not for --rate scoring; got {k!r}. Leave it out, or take --rate selection.")
            return None
        if k is None:
            raise ConfigError(
                "--rate selection needs --k, how many of each list are selected; got none. For scores without a "
                "cut-off take --rate scoring."
            )
        cuts = options.cut_offs(k)
        if len(cuts) > 1:
            raise ConfigError(f"--standard {self.standard} takes one --k; got {k!r}.")
        return cuts[0]


def write(report: BiasAudit, shape: str, out: Path | None, file: list[Path]) -> None:
    """Write a bias audit in a format, to a file or to standard output."""
    made = audit_output.made_for(shape, out, file)
    title = one_line(f"Bias audit of {title_of(file[0])}")
    content: str | bytes
    if shape == "json":
        content = common.as_json(report.to_dict() | {"provenance": made}) + "\n"
    elif shape == "csv":
        content = report.table().write_csv()
    elif shape == "xlsx":
        content = workbook(_sheets(report, made))
    elif shape == "html":
        content = er.bias_audit_page(title, report, made=made)
    else:
        content = report.markdown(title) if shape == "md" else report.text(title)
    audit_output.give(content, shape, out, made)


def _sheets(report: BiasAudit, made: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """One sheet per table, and two that say what they are."""
    whole = report.to_dict()
    about = [{"name": name, "value": whole[name]} for name in ("rule", "rate", "k", "person", "reduce", "confidence")]
    about += [{"name": name, "value": value} for name, value in report.facts.items()]
    rows = table_rows(report)
    return {
        "about": about + made_rows(made),
        "conclusions": [{"conclusion": sentence} for sentence in report.conclusions()],
        **{table.name: [row for row in rows if row["table"] == table.name] for table in report.tables},
    }


def _shown(value: Any) -> str:
    first = value[0] if isinstance(value, list) else value
    return repr(str(first))
