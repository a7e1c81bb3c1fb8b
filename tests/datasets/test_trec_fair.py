"""TREC Fair Ranking 2019: both sources of features, the groups, and what is said of files that are wrong."""

from __future__ import annotations

import csv
import gzip
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenrank.data import RankingData
from evenrank.datasets import trec_fair_2019, trec_fair_2019_groupings, trec_fair_2019_titles
from evenrank.errors import ConfigError, DataError, DataWarning

NAMES = "title_score abstract_score entities_score venue_score authors_score year inCitations outCitations qlength"
TRAINING, AUTHOR_GROUPS = "fair-TREC-training-sample.json", "fair-TREC-sample-author-groups.csv"


def paper(number: int, title: str, abstract: str = "", **others: Any) -> dict[str, Any]:
    return {"id": f"p{number:02d}", "title": title, "paperAbstract": abstract, "year": 2000 + number} | others


def author(name: str, *ids: str) -> dict[str, Any]:
    return {"name": name, "ids": list(ids)}


# Authors 1…7 have the gid of their id; 99 has none.
ADA, BOB, CY, DEE, EVE = (
    author("Ada", "1"),
    author("Bob", "2"),
    author("Cy", "3"),
    author("Dee", "4"),
    author("Eve", "7"),
)
UNA = author("Una", "99")
PAPERS = [
    paper(0, "Fair ranking", "Ranking of papers is fair. Ranking again!", authors=[ADA], entities=["Ranking", "Fair"]),
    paper(1, "Neural ranking models", "A model for the query", authors=[BOB, DEE], venue="Ranking Conference"),
    paper(2, "Graph search", "search search search", authors=[CY], inCitations=["a", "b"], outCitations=["c"]),
    paper(3, "Exposure in search", "", authors=[EVE], entities=["Web search engine"], venue="SEARCH"),
    paper(4, "Ada and the engine", "Engines", authors=[ADA, EVE], entities=[]),
    paper(5, "A ranking of rankings", "fair fair", authors=[UNA], inCitations=["x"]),
    paper(6, "Überraschung in der Suche", "Fair — naïve search", authors=[DEE, UNA], year=None),
    paper(7, "", "", authors=[]),
    paper(8, "Unjudged ranking", "fair search for all the words that are not asked", authors=[BOB]),
    paper(9, "Unjudged, too", "ranking engine", authors=[CY], venue="Ranking Letters"),
    paper(10, "Unjudged and without words", "", entities=["fair search"], authors=[ADA]),
]
QUERIES = [
    {"qid": 11, "query": "fair ranking", "documents": {"p00": 1, "p01": 0, "p05": 1, "p06": 0}},
    {"qid": 7, "query": "search engine search", "documents": {"p02": 1, "p03": 1, "p04": 0, "p06": 1, "p07": 0}},
    {"qid": 30, "query": "Ada", "documents": {"p04": 1, "p00": 0}},
    {"qid": 31, "query": "the of a", "documents": {"p01": 1, "p02": 0}},
    {"qid": 32, "query": "überraschung", "documents": {"p05": 1, "p06": 0}},
]


def put(folder: Path, papers: Any = PAPERS, queries: Any = QUERIES, corpus: str = "corpus.jsonl") -> Path:
    """The files of the official corpus, in small."""

    def documents(listed: Any) -> Any:
        return [{"doc_id": k, "relevance": v} for k, v in listed.items()] if isinstance(listed, dict) else listed

    lines = [json.dumps(query | {"frequency": 0.1, "documents": documents(query["documents"])}) for query in queries]
    (folder / TRAINING).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / AUTHOR_GROUPS).write_text(
        "author_id,gid\n" + "".join(f"{i},{i}\n" for i in range(1, 8)), encoding="utf-8"
    )
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in papers).encode()
    (folder / corpus).write_bytes(gzip.compress(text) if corpus.endswith(".gz") else text)
    return folder


def put_tables(folder: Path, rows: dict[tuple[int, str], Any], authors: dict[str, list[str]]) -> Path:
    """The files of the other source: a line of features a pair, and an author a line."""
    put(folder)
    (folder / "corpus.jsonl").unlink()
    lines = [f"{qid},{','.join(map(str, values))},0.5,{doc}" for (qid, doc), values in rows.items()]
    header = f"qid,{NAMES.replace(' ', ',')},journal_score,doc_id"
    (folder / "es-features-bonart-training.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    lines = [f"{doc},{one},{i}" for doc, ids in authors.items() for i, one in enumerate(ids, 1)]
    (folder / "corpus-subset-for-queries.paper_authors.csv").write_text(
        "\n".join(["paper_sha,corpus_author_id,position", *lines, ""]), encoding="utf-8"
    )
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rows(data: RankingData) -> dict[tuple[Any, str], tuple[Any, ...]]:
    """(query, paper) → (relevance, group label, features)."""
    labels = [data.group_names[code] if code >= 0 else None for code in data.group]
    keys = zip(data.query_ids[data.query_of_row].tolist(), data.item_ids.tolist(), strict=True)
    return dict(zip(keys, zip(data.relevance.tolist(), labels, data.features.tolist(), strict=True), strict=True))


# ---------------------------------------------------------------------- BM25 against the formula

STOP_WORDS = {"a", "and", "are", "for", "in", "is", "not", "of", "that", "the"}  # those of Lucene that occur here


def words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 1 and word not in STOP_WORDS]


def bm25(query: str, document: str, documents: list[str]) -> float:
    """The Lucene variant with k1 = 1.5 and b = 0.75, one word of the query after the other."""
    lengths = [len(words(text)) for text in documents]
    mean = sum(lengths) / len(lengths)
    total = 0.0
    for word in words(query):
        having = sum(word in words(text) for text in documents)
        times = words(document).count(word)
        if times:
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            total += idf * times / (times + 1.5 * (1 - 0.75 + 0.75 * len(words(document)) / mean))
    return total


FIELDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "title_score": lambda one: one["title"],
    "abstract_score": lambda one: one["paperAbstract"],
    "entities_score": lambda one: " ".join(one.get("entities", [])),
    "venue_score": lambda one: one.get("venue", ""),
    "authors_score": lambda one: " ".join(person["name"] for person in one["authors"]),
}


@pytest.mark.parametrize("field", FIELDS)
def test_bm25_is_the_formula_over_the_whole_corpus(tmp_path: Path, field: str) -> None:
    data = trec_fair_2019(put(tmp_path), unknown="keep")
    texts = {one["id"]: FIELDS[field](one) for one in PAPERS}
    query_text = {query["qid"]: query["query"] for query in QUERIES}
    found = {key: values[2][data.feature_names.index(field)] for key, values in rows(data).items()}
    expected = {(qid, doc): bm25(query_text[qid], texts[doc], list(texts.values())) for qid, doc in found}
    assert found == pytest.approx(expected, rel=1e-12)
    assert any(expected.values())  # each field has a word of some query


def test_the_unjudged_papers_and_their_words_count(tmp_path: Path) -> None:
    whole = trec_fair_2019(put(tmp_path))
    part = trec_fair_2019(put(tmp_path, papers=PAPERS[:-1]))
    assert (whole.column("title_score") != part.column("title_score")).any()


def test_a_field_that_no_paper_has_scores_0(tmp_path: Path) -> None:
    data = trec_fair_2019(put(tmp_path, [{k: v for k, v in one.items() if k != "venue"} for one in PAPERS]))
    assert not data.column("venue_score").any()
    assert data.column("title_score").any()


def test_the_other_features(tmp_path: Path) -> None:
    data = trec_fair_2019(put(tmp_path), unknown="keep")
    assert data.feature_names == tuple(NAMES.split())
    found = {key: values[2][5:] for key, values in rows(data).items()}
    assert found[7, "p02"] == [2002, 2, 1, len("search engine search")]
    assert found[11, "p05"] == [2005, 1, 0, len("fair ranking")]
    assert found[32, "p06"][3] == len("überraschung")
    # The median over the judged pairs with a known year: p00 ×2, p01 ×2, p02 ×2, p03, p04 ×2, p05 ×2, p07.
    median = (2002 + 2003) / 2
    assert [found[qid, "p06"][0] for qid in (11, 7, 32)] == [median] * 3


def test_the_median_year_does_not_depend_on_the_groups(tmp_path: Path) -> None:
    kept, dropped = (rows(trec_fair_2019(put(tmp_path), unknown=unknown)) for unknown in ("keep", "drop"))
    assert {key: values[2] for key, values in dropped.items()} == {key: kept[key][2] for key in dropped}


# ---------------------------------------------------------------------- rows and groups


def test_ids_order_relevance_and_groups(tmp_path: Path) -> None:
    data = trec_fair_2019(put(tmp_path))
    assert data.query_ids.tolist() == [11, 7, 30, 31]
    assert data.group_names == ("above 3", "up to 3")
    # Levels: p00 1, p01 (2 + 4) / 2 = 3, p02 3, p03 7, p04 (1 + 7) / 2 = 4, p06 4; p05 and p07 have none.
    up, above = "up to 3", "above 3"
    assert {key: values[:2] for key, values in rows(data).items()} == {
        (11, "p00"): (1, up),
        (11, "p01"): (0, up),
        (11, "p06"): (0, above),
        (7, "p02"): (1, up),
        (7, "p03"): (1, above),
        (7, "p04"): (0, above),
        (7, "p06"): (1, above),
        (30, "p04"): (1, above),
        (30, "p00"): (0, up),
        (31, "p01"): (1, up),
        (31, "p02"): (0, up),
    }
    assert list(rows(data)) == [
        (query["qid"], doc)
        for query in QUERIES[:4]
        for doc in query["documents"]  # type: ignore[attr-defined]
        if doc not in ("p05", "p07")
    ]


def test_unknown_groups_may_be_kept(tmp_path: Path) -> None:
    data = trec_fair_2019(put(tmp_path), unknown="keep")
    assert data.query_ids.tolist() == [11, 7, 30, 31, 32]
    assert [key for key, values in rows(data).items() if values[1] is None] == [(11, "p05"), (7, "p07"), (32, "p05")]
    assert np.count_nonzero(data.group == -1) == 3


@pytest.mark.parametrize(
    ("threshold", "above"),
    [
        (-1, ["p00", "p01", "p02", "p03", "p04", "p06"]),
        (2.999, ["p01", "p02", "p03", "p04", "p06"]),
        (3, ["p03", "p04", "p06"]),
        (3.5, ["p03", "p04", "p06"]),
        (np.float32(4), ["p03"]),
        (7, []),
    ],
)
def test_a_level_equal_to_the_threshold_is_not_above(tmp_path: Path, threshold: Any, above: list[str]) -> None:
    data = trec_fair_2019(put(tmp_path), threshold)
    assert data.group_names == (f"above {threshold:g}", f"up to {threshold:g}")
    assert sorted({doc for (_, doc), values in rows(data).items() if values[1] == f"above {threshold:g}"}) == above


def test_an_author_counts_once_by_the_first_known_id(tmp_path: Path) -> None:
    twice = [author("Ada", "1"), author("Ada", "1"), author("Zed", "99", "7", "2"), author("Una", "99"), {"name": "Al"}]
    papers = [paper(0, "x", authors=twice), paper(1, "y", authors=[author("Cy", "3"), "Plain Name"])]
    data = trec_fair_2019(
        put(tmp_path, papers, [{"qid": 1, "query": "x", "documents": {"p00": 1, "p01": 0}}]), threshold=3.9
    )
    assert [values[1] for values in rows(data).values()] == ["above 3.9", "up to 3.9"]  # (1 + 7) / 2 = 4


def test_groupings_share_the_rows_and_the_features(tmp_path: Path) -> None:
    found = trec_fair_2019_groupings(put(tmp_path), (3, 4.0, 5.5))
    assert list(found) == ["t=3", "t=4", "t=5.5"]
    assert len({id(data.features) for data in found.values()}) == 1
    for data, threshold in zip(found.values(), (3, 4, 5.5), strict=True):
        alone = trec_fair_2019(tmp_path, threshold)
        assert rows(data) == rows(alone)
        assert data.group_names == alone.group_names


# ---------------------------------------------------------------------- the corpus and its forms


@pytest.mark.parametrize("name", ["corpus-subset-for-queries.jsonl.gz", "s2-corpus-00.gz", "s2-corpus-00", "a.json.gz"])
def test_other_names_and_gzip_give_the_same(tmp_path: Path, name: str) -> None:
    plain, other = tmp_path / "plain", tmp_path / "other"
    plain.mkdir()
    other.mkdir()
    assert rows(trec_fair_2019(put(plain))) == rows(trec_fair_2019(put(other, corpus=name)))


def test_parts_are_one_corpus_and_a_packed_copy_counts_once(tmp_path: Path) -> None:
    whole = rows(trec_fair_2019(put(tmp_path)))
    put(tmp_path, PAPERS[5:], corpus="part-1.jsonl")
    put(tmp_path, PAPERS[5:], corpus="part-1.jsonl.gz")
    put(tmp_path, PAPERS[:5])
    (tmp_path / "fair-TREC-evaluation-sample.json.gz").write_bytes(b"not a paper")
    assert rows(trec_fair_2019(tmp_path)) == whole


def test_names_of_other_releases(tmp_path: Path) -> None:
    other = []
    for one in PAPERS:
        people = [{"name": person["name"], "authorId": float(person["ids"][0])} for person in one["authors"]]
        changed = {k: v for k, v in one.items() if k not in ("id", "paperAbstract")} | {
            "paperId": one["id"],
            "abstract": one["paperAbstract"] or None,
            "authors": people,
            "entities": [{"name": name} for name in one.get("entities", [])],
            "year": str(one["year"]) if one["year"] else 0,
            "inCitations": len(one.get("inCitations", [])),
        }
        other.append(changed)
    expected = rows(trec_fair_2019(put(tmp_path)))
    assert rows(trec_fair_2019(put(tmp_path, other))) == expected


def test_papers_that_are_absent_from_the_corpus_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, [one for one in PAPERS if one["id"] not in ("p00", "p03")])
    with pytest.warns(DataWarning, match=r"^3 of 15 judged \(query, paper\) pairs"):
        data = trec_fair_2019(tmp_path)
    assert set(rows(data)) == {(11, "p01"), (11, "p06"), (7, "p02"), (7, "p04"), (7, "p06"), (31, "p01"), (31, "p02")}


def test_titles(tmp_path: Path) -> None:
    queries, titles = trec_fair_2019_titles(put(tmp_path))
    assert queries == {query["qid"]: query["query"] for query in QUERIES}
    assert titles == {one["id"]: one["title"] for one in PAPERS[:8]}
    (tmp_path / "corpus-subset-for-queries.papers.csv").write_text(
        'paper_sha,paper_title,paper_year\np00,"One, ""two""\nthree",2000.0\np08,unjudged,\np01,,\n', encoding="utf-8"
    )
    assert trec_fair_2019_titles(tmp_path)[1] == {"p00": 'One, "two"\nthree', "p01": ""}


# ---------------------------------------------------------------------- the feature file


def test_the_feature_file_is_read_where_there_are_no_papers(tmp_path: Path) -> None:
    values = {("11", "p00"): [1.5, 2, 3, 4, 5, 2001.0, 7, 8, 12], ("11", "p01"): [0, 0, 0, 0, 0, 0.0, 1, 1, 12]}
    others = {("11", "p08"): [9] * 9, ("7", "p02"): [1, 1, 1, 1, 1, 2005, 1, 1, 20], ("12", "p00"): [9] * 9}
    authors = {"p00": ["1.0", "", "7"], "p01": ["3", "99"], "p02": ["1"]}
    data = trec_fair_2019(put_tables(tmp_path, values | others, authors))  # type: ignore[arg-type]
    assert data.feature_names == tuple(NAMES.split())
    assert rows(data) == {
        (11, "p00"): (1, "above 3", values["11", "p00"]),
        (11, "p01"): (0, "up to 3", [0, 0, 0, 0, 0, (2001 + 2005) / 2, 1, 1, 12]),
    }


def test_the_corpus_goes_before_the_feature_file(tmp_path: Path) -> None:
    put_tables(tmp_path, {(11, "p00"): [0] * 9, (11, "p01"): [0] * 9}, {"p00": ["1"], "p01": ["2"]})
    assert trec_fair_2019(tmp_path).n_rows == 2
    assert trec_fair_2019(put(tmp_path)).n_rows == 11


def test_real_counts_and_shares(shared_data: Callable[[str], Path]) -> None:
    found = trec_fair_2019_groupings(shared_data("trec_fair_2019"))
    shares = []
    for data in found.values():
        assert (data.n_queries, data.n_rows, data.n_features) == (547, 3183, 9)
        assert data.lengths.min() == 2
        shares.append(round(100 * np.mean(data.group == 0)))
    assert shares == [49, 21, 4]
    assert found["t=3"].column("year").min() > 1900
    kept = trec_fair_2019(shared_data("trec_fair_2019"), unknown="keep")
    assert (kept.n_rows, np.count_nonzero(kept.group == -1)) == (3707, 521)


def test_real_features_and_groups_are_those_of_the_files(shared_data: Callable[[str], Path]) -> None:
    folder = shared_data("trec_fair_2019")
    gid = {row["author_id"]: int(row["gid"]) for row in table(folder / AUTHOR_GROUPS)}
    authors: dict[str, set[str]] = {}
    for row in table(folder / "corpus-subset-for-queries.paper_authors.csv"):
        authors.setdefault(row["paper_sha"], set()).add(row["corpus_author_id"])
    features = {(row["qid"], row["doc_id"]): row for row in table(folder / "es-features-bonart-training.csv")}
    found = rows(trec_fair_2019(folder, 4))
    for (qid, doc), (_, label, values) in found.items():
        expected = [float(features[str(qid), doc][name]) for name in NAMES.split()]
        expected[5] = expected[5] or 2008.0  # the median of the years that are known
        known = [gid[one] for one in authors[doc] if one in gid]
        assert (values, label) == (expected, "above 4" if sum(known) > 4 * len(known) else "up to 4")


def test_real_titles_scored_here_agree_with_the_feature_file(
    shared_data: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shared_data("trec_fair_2019")
    ids: dict[str, list[str]] = {}
    for row in table(folder / "corpus-subset-for-queries.paper_authors.csv"):
        ids.setdefault(row["paper_sha"], []).append(row["corpus_author_id"])
    papers = [
        {"id": row["paper_sha"], "title": row["paper_title"], "venue": row["paper_venue"], "year": row["paper_year"]}
        | {"authors": [author("", one) for one in ids.get(row["paper_sha"], [])]}
        for row in table(folder / "corpus-subset-for-queries.papers.csv")
    ]
    (tmp_path / "titles.jsonl").write_text("\n".join(map(json.dumps, papers)), encoding="utf-8")
    for name in (TRAINING, AUTHOR_GROUPS):
        (tmp_path / name).symlink_to(folder / name)
    with pytest.warns(DataWarning, match="not in the corpus"):
        ours = rows(trec_fair_2019(tmp_path))
    theirs = rows(trec_fair_2019(folder))
    assert set(theirs) <= set(ours)
    assert all(ours[key][:2] == theirs[key][:2] for key in theirs)
    x, y = np.array([ours[key][2] for key in theirs]), np.array([theirs[key][2] for key in theirs])
    # Another corpus, analyser and k1, but the same titles: far from equal, and nearly the same order.
    assert np.corrcoef(x[:, 0], y[:, 0])[0, 1] > 0.94
    assert np.corrcoef(x[:, 3], y[:, 3])[0, 1] > 0.9
    np.testing.assert_array_equal(x[:, 8], y[:, 8])


# ---------------------------------------------------------------------- what is wrong, and where


@pytest.mark.parametrize("threshold", [math.nan, math.inf, 10**400, "3", None, True, 3j])
def test_a_threshold_that_is_not_a_finite_number(tmp_path: Path, threshold: Any) -> None:
    with pytest.raises(ConfigError, match=r"^threshold must be a finite number; got "):
        trec_fair_2019(tmp_path, threshold)


def test_other_options_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown must be one of drop, keep; got 'guess'"):
        trec_fair_2019(tmp_path, unknown="guess")
    with pytest.raises(ConfigError, match="thresholds must be one or more numbers; got none"):
        trec_fair_2019_groupings(tmp_path, ())
    with pytest.raises(ConfigError, match="thresholds must differ"):
        trec_fair_2019_groupings(tmp_path, (3, 3.0))


def test_a_missing_folder_or_file_is_named_with_those_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none: there is no such folder. It must hold fair-TREC-training-sample.json"):
        trec_fair_2019(tmp_path / "none")
    put(tmp_path)
    (tmp_path / "corpus.jsonl").unlink()
    with pytest.raises(
        DataError, match=r"es-features-bonart-training.csv is missing. It must hold .* either the papers"
    ):
        trec_fair_2019(tmp_path)
    with pytest.raises(DataError, match=r"titles need corpus-subset-for-queries.papers.csv or the papers"):
        trec_fair_2019_titles(tmp_path)
    (tmp_path / AUTHOR_GROUPS).unlink()
    with pytest.raises(DataError, match=r"fair-TREC-sample-author-groups.csv is missing"):
        trec_fair_2019(tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "x", ', r"each line must be one JSON object \(.*\); got '\{\"id\": \"x\",'"),
        (b"[1]", r"each line must be a JSON object .*; got \[1\]"),
        (b'{"title": "x"}', "'id' must be the text of a paper's id; got no value"),
        (b'{"id": "x", "title": 5}', "'title' must be text; got 5"),
        (b'{"id": "x", "authors": "Ada"}', "'authors' must be a list; got 'Ada'"),
        (b'{"id": "x", "entities": [["a"]]}', "'entities' must be text; got"),
        (b'{"id": "x", "year": "soon"}', "'year' must be a number; got 'soon'"),
        (b'{"id": "x", "inCitations": "7"}', "'inCitations' must be a list; got '7'"),
        (b'{"id": "x", "title": "na\xefve"}', "text must be UTF-8; found the byte 0xef"),
        (b'{"id": "p02"}', r"paper 'p02' is also on .*corpus.jsonl:3. Keep one copy"),
    ],
)
def test_a_malformed_paper_is_named_with_its_line(tmp_path: Path, line: bytes, message: str) -> None:
    file = put(tmp_path) / "corpus.jsonl"
    file.write_bytes(file.read_bytes() + b"\n" + line + b"\n")
    with pytest.raises(DataError, match=r"corpus.jsonl:13: " + message):
        trec_fair_2019(tmp_path)


def test_a_cut_or_wrongly_encoded_corpus(tmp_path: Path) -> None:
    file = put(tmp_path, corpus="corpus.jsonl.gz") / "corpus.jsonl.gz"
    whole = file.read_bytes()
    for broken in (whole[:-9], whole[:200], whole[:60] + b"\0" * 60 + whole[120:]):
        file.write_bytes(broken)
        with pytest.raises(DataError, match=r"corpus.jsonl.gz: the gzip file is damaged or cut short"):
            trec_fair_2019(tmp_path)
    file.write_bytes(gzip.decompress(whole).decode().encode("utf-16"))
    with pytest.raises(DataError, match="the file is UTF-16; UTF-8 is needed"):
        trec_fair_2019(tmp_path)
    file.write_bytes(b"\xef\xbb\xbf" + gzip.decompress(whole))
    assert trec_fair_2019(tmp_path).n_rows == 11


def test_a_corpus_of_other_papers(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the corpus has none of the papers"):
        trec_fair_2019(put(tmp_path, PAPERS[8:]))


def test_no_known_author(tmp_path: Path) -> None:
    (put(tmp_path) / AUTHOR_GROUPS).write_text("author_id,gid\n500,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="no list has two papers with features and a known group"):
        trec_fair_2019(tmp_path)
    assert trec_fair_2019(tmp_path, unknown="keep").n_rows == 15


GOOD = {"doc_id": "p00", "relevance": 1}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"documents": [GOOD, {"doc_id": "p01", "relevance": 0}, GOOD]}, "doc_id 'p00' is listed twice for qid 50"),
        ({"documents": [{"doc_id": "p00"}]}, "each of 'documents' must have 'doc_id' and 'relevance'"),
        ({"documents": [{"doc_id": "p00", "relevance": "yes"}]}, "'relevance' must be a finite number ≥ 0; got 'yes'"),
        ({"documents": [{"doc_id": "p00", "relevance": -1}]}, "'relevance' must be a finite number ≥ 0; got -1"),
        ({"documents": None}, "'documents' must be a list; got no value"),
        ({"qid": None}, "'qid' must be a number or text; got no value"),
        ({"query": ["a"]}, r"'query' must be text; got \['a'\]"),
        ({"qid": 30}, r"qid 30 is also on .*fair-TREC-training-sample.json:3"),
    ],
)
def test_a_malformed_list_is_named_with_its_line(tmp_path: Path, query: dict[str, Any], message: str) -> None:
    put(tmp_path, queries=[*QUERIES, {"qid": 50, "query": "x", "documents": [GOOD]} | query])
    with pytest.raises(DataError, match=r"fair-TREC-training-sample.json:6: " + message):
        trec_fair_2019(tmp_path)


def test_an_empty_training_sample(tmp_path: Path) -> None:
    (put(tmp_path) / TRAINING).write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="at least one query is needed"):
        trec_fair_2019(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (AUTHOR_GROUPS, "author_id,group\n1,1\n", r"groups.csv: columns 'author_id', 'gid' are needed; 'gid' are not"),
        (AUTHOR_GROUPS, "author_id,gid\n1,1\n2,high\n", "groups.csv:3: gid must be a finite number; got 'high'"),
        (AUTHOR_GROUPS, "author_id,gid\n1,1\n,2\n", "groups.csv:3: author_id must not be empty"),
        (AUTHOR_GROUPS, "author_id,gid\n1,1\n1.0,2\n", "groups.csv:3: author 1.0 has two gids"),
        ("es-features-bonart-training.csv", "11,1,1,1,1,1,1,1,1,1,0,p01", "training.csv:4: qid 11, doc_id p01 occurs"),
        ("es-features-bonart-training.csv", "11,1,nan,1,1,1,1,1,1,1,0,p05", "training.csv:4: abstract_score must be a"),
        (
            "es-features-bonart-training.csv",
            "11,1,1,1,1,1,,1,1,1,0,p05",
            "training.csv:4: year must be .* got no value",
        ),
        ("es-features-bonart-training.csv", "11,1,1,1", "training.csv:4: .* fields"),
    ],
)
def test_a_malformed_table_is_named_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    file = put_tables(tmp_path, {(11, "p00"): [0] * 9, (11, "p01"): [0] * 9}, {"p00": ["1"], "p01": ["2"]}) / name
    file.write_text(text if "\n" in text else file.read_text(encoding="utf-8") + text + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        trec_fair_2019(tmp_path)


def test_a_feature_file_of_other_queries(tmp_path: Path) -> None:
    put_tables(tmp_path, {(999, "p00"): [0] * 9}, {"p00": ["1"]})
    with pytest.raises(DataError, match=r"no row is a \(qid, doc_id\) pair that fair-TREC-training-sample.json judges"):
        trec_fair_2019(tmp_path)


def test_the_loader_is_imported_without_polars_and_bm25s() -> None:
    code = "import evenrank.datasets, sys; print(*[m for m in ('polars', 'bm25s') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
