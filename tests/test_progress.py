"""Progress off a terminal: silence for short work, a line every half minute for long."""

from __future__ import annotations

import pytest

from evenrank.progress import Lines, bar


def test_lines_come_every_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    calls = {129.0: 0.1, 131.0: 0.25, 150.0: 0.3, 161.0: 0.5, 3761.0: 0.9, 5000.0: 1.0}
    times = iter([100.0, *calls])
    lines = Lines("sweep", lambda: next(times))
    for done in calls.values():
        lines(done)
    assert capsys.readouterr().err.splitlines() == [
        "sweep: 25% after 0:31, about 1:33 left",
        "sweep: 50% after 1:01, about 1:01 left",
        "sweep: 90% after 1:01:01, about 6:47 left",
        "sweep: 100% after 1:21:40",
    ]


def test_a_note_stands_beside_the_title(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines("embeddings", lambda: now)
    lines.note("80 per second")
    now = 60.0
    lines(0.0)
    assert capsys.readouterr().err == "embeddings, 80 per second: 0% after 1:00\n"


def test_short_work_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with bar("sweep") as progress:
        assert isinstance(progress, Lines)
        progress(0.5)
        progress(1.0)
    with bar("sweep", show=False) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
