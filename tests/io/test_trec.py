"""TREC runs with their judgements and groups."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.io import read

RUN = "301 Q0 d1 1 9.5 tag\n301\tQ0  d2 2 7 tag \n\n302 Q0 d1 1 3 tag\n"
QRELS = "301 0 d2 2\n301 0 d9 1\n302 0 d1 -1\n"


@pytest.fixture
def write(tmp_path: Path):
    def _write(content: str, name: str) -> Path:
        (tmp_path / name).write_text(content)
        return tmp_path / name

    return _write


def rows(data):
    query = data.query_ids[data.query_of_row].tolist()
    group = [None if code < 0 else data.group_names[code] for code in data.group]
    return list(
        zip(query, data.item_ids.tolist(), data.features[:, 0].tolist(), data.relevance.tolist(), group, strict=True)
    )


def test_judged_items_that_were_missed_are_added_below(write):
    data = read(write(RUN, "bm25.run"), qrels=write(QRELS, "qrels.txt"), groups={"d1": "u", "d9": "v"})
    assert data.feature_names == ("score",)
    assert rows(data) == [
        (301, "d1", 9.5, 0, "u"),
        (301, "d2", 7, 2, None),
        (301, "d9", 7 - 1, 1, "v"),
        (302, "d1", 3, 0, "u"),
    ]


def test_groups_from_a_table_and_no_judgements(write):
    data = read(write(RUN, "bm25.trec"), groups=write("group,item\n1,d1\n0,d2\n1,d1\n", "groups.csv"), score="score")
    assert rows(data) == [(301, "d1", 9.5, 0, 1), (301, "d2", 7, 0, 0), (302, "d1", 3, 0, 1)]
    assert rows(read(write(RUN, "bm25.trec")))[0] == (301, "d1", 9.5, 0, None)


def test_judged_queries_outside_the_run_are_left_out_with_a_warning(write):
    qrels = write(QRELS + "303 0 d1 1\n304 0 d1 1\n", "qrels")
    with pytest.warns(DataWarning, match="2 judged queries are not in the run and are left out") as caught:
        assert read(write(RUN, "bm25.run"), qrels=qrels).n_queries == 2
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (RUN + "302 Q0 d2 3\n", QRELS, r"bm25\.run:5: a row must have 6 fields, 'qid Q0 item rank score tag'; got 4"),
        (RUN + "302 Q0 d2 2 x tag\n", QRELS, r"bm25\.run:5: score must be a finite number; got 'x'\."),
        (RUN + "302 Q0 d2 2 nan tag\n", QRELS, r"bm25\.run:5: score must be a finite number; got 'nan'\."),
        (RUN + "302 Q0 d1 2 1 tag\n", QRELS, r"bm25\.run:5: item .* occurs twice in query"),
        ("\n", QRELS, r"bm25\.run: the file is empty"),
        (RUN, QRELS + "302 d2 1\n", r"qrels\.txt:4: a row must have 4 fields, .* got 3"),
        (RUN, QRELS + "302 0 d2 yes\n", r"qrels\.txt:4: relevance must be a finite number; got 'yes'\."),
        (RUN, QRELS + "301 0 d2 1\n", r"qrels\.txt:4: an item must be judged once in a query; 'd2' is judged again"),
        (RUN, "9 0 d1 1\n", r"qrels\.txt: the judgements and the run must share queries"),
    ],
)
def test_bad_rows(write, run, qrels, message):
    with pytest.raises(DataError, match=message) as caught:
        read(write(run, "bm25.run"), qrels=write(qrels, "qrels.txt"))
    assert "\n" not in str(caught.value)


def test_bad_groups_and_options(write):
    run = write(RUN, "bm25.run")
    with pytest.raises(DataError, match=r"groups\.csv:3: an item must have one group; 'd1' has 'u' and 'v'\."):
        read(run, groups=write("item,group\nd1,u\nd1,v\n", "groups.csv"))
    with pytest.raises(DataError, match=r"groups\.csv: column 'item' is not in the data; it has 'id', 'group'"):
        read(run, groups=write("id,group\nd1,u\n", "groups.csv"))
    with pytest.raises(DataError, match=r"none: there is no such file"):
        read(run, qrels="none")
    with pytest.raises(ConfigError, match="features must be 'score'"):
        read(run, features=["x"])
    with pytest.raises(ConfigError, match="score must be 'score'"):
        read(run, score="bm25")
    with pytest.raises(ConfigError, match="ignore must be empty for a TREC run, which has no features; got 'x'"):
        read(run, ignore=["x"])
    with pytest.raises(ConfigError, match="sample_weight must be None"):
        read(run, sample_weight="w")
