"""What `bench` prints."""

from __future__ import annotations

from evenrank.cli import show
from evenrank.leaderboard.plan import FLOOR
from evenrank.leaderboard.result import Bench, Standing
from evenrank.leaderboard.words import HEAD, answers, caption, cells, notes

MARKS = "T: sees the group at training; S: at serving; L: sees other lists at serving; n: needs no labels."


def standings(result: Bench) -> None:
    """Print one table per data set, the largest reduction first, and how to read it."""
    for data in result.data:
        table = show.new_table(caption(result, data))
        for name in HEAD:
            left = name in HEAD[:3]
            table.add_column("sees" if name == HEAD[2] else name, justify="left" if left else "right", no_wrap=True)
        for standing in result.standings(data):
            texts = cells(standing)
            texts[2] = _marks(standing)
            table.add_row(*texts)
        show.console().print(table)
        for sentence in answers(result, data):
            show.line(sentence)
        show.line("")
    show.line(MARKS)
    for note in notes(result):
        show.line(note)


def _marks(standing: Standing) -> str:
    """Say in letters what the method may see."""
    if standing.method == FLOOR:
        return "all"
    sees = standing.sees
    marks = {"T": sees.group_at_training, "S": sees.group_at_serving, "L": sees.other_lists, "n": not sees.labels}
    return " ".join(mark for mark, is_so in marks.items() if is_so) or "–"
