"""`Summary`: merged in any order, saved and loaded, it gives the audit of all rows to the last digit."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import evenrank as er
from evenrank.audits import pairs, summary_file
from evenrank.audits.ids import hashed

Summary = er.audits.Summary
pytestmark = pytest.mark.filterwarnings("ignore::evenrank.DataWarning")


def rows(seed=0, queries=60, groups="abcd", text=False, ties=True):
    """Ragged lists with ties, unknown groups, recurring items and users."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, queries)
    qid = np.repeat(rng.permutation(queries), lengths)
    n = len(qid)
    items = np.concatenate([rng.permutation(40)[:length] for length in lengths])
    of_item = np.array([*groups, None] * 40, object)[:40]
    group = of_item[items]
    scores = np.round(rng.normal(size=n), 1 if ties else 9)
    ids = np.array([f"q{q}" for q in qid]) if text else qid
    data = er.RankingData.from_arrays(np.zeros((n, 0)), rng.integers(0, 2, n), group, ids, item_ids=items)
    return scores, data, np.array([f"u{q % 12}" for q in qid])


def parts_of(scores, data, user, seed, number=3):
    """Summaries of the queries split at random."""
    part = np.random.default_rng(seed).integers(0, number, data.n_queries)
    stored, labels = data.to_stored(scores), user if data.row_order is None else user[data.row_order]
    return [
        Summary.of(stored[mask[data.query_of_row]], data.take(mask), [1, 3], cluster=labels[mask[data.query_of_row]])
        for mask in (part == j for j in range(number))
        if mask.any()
    ]


def as_text(audit):
    return json.dumps(audit.to_dict(), default=float)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_parts_in_any_order_give_the_audit_of_the_whole(seed, text):
    scores, data, user = rows(seed, text=text)
    whole = as_text(er.audit(scores, data, [1, 3], cluster=user))
    parts = parts_of(scores, data, user, seed)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        first, *others = (parts[j] for j in order)
        assert as_text(er.audit(first.merge(*others))) == whole


def test_cut_offs_one_by_one_give_the_same_audit(monkeypatch):
    scores, data, user = rows(3)
    whole = as_text(er.audit(Summary.of(scores, data, [1, 2, 3, 9], cluster=user)))
    monkeypatch.setattr("evenrank.audits.audit.HELD", 1)
    assert as_text(er.audit(scores, data, [1, 2, 3, 9], cluster=user)) == whole


def test_update_adds_lists_and_a_group_may_come_late():
    scores, data, _ = rows()
    early = data.query_ids < 30
    stored = data.to_stored(scores)
    mask = early[data.query_of_row]
    first, second = data.take(early), data.take(~early)
    labels = np.where(first.group == 3, -1, first.group)
    fewer = first.with_group([None if code < 0 else "abc"[code] for code in labels])
    summary = Summary.of(stored[mask], fewer, [2]).update(stored[~mask], second)
    assert summary.group_names == ("a", "b", "c", "d")
    late = np.array([*data.group_names, None], object)[data.group]
    late[mask & (data.group == 3)] = None
    expected = er.audit(
        stored,
        er.RankingData.from_arrays(
            data.features, data.relevance, late, data.query_ids[data.query_of_row], item_ids=data.item_ids
        ),
        [2],
    )
    assert as_text(er.audit(summary)) == as_text(expected)


def test_sums_are_those_of_the_rows():
    """A plain loop over queries, strata and groups."""
    scores, data, _ = rows(5)
    summary = Summary.of(scores, data, [1, 2])
    stored = data.to_stored(scores)
    entry = 0
    for place, query in enumerate(np.argsort(data.query_ids)):
        inside = slice(data.query_ptr[query], data.query_ptr[query + 1])
        own, relevant, group = stored[inside], data.relevant[inside], data.group[inside]
        above = (own[None] > own[:, None] + 1e-12).sum(axis=1)
        tied = (np.abs(own[None] - own[:, None]) <= 1e-12).sum(axis=1)
        assert summary.lengths[place] == len(own)
        for stratum in (0, 1):
            for code in range(4):
                cell = (relevant == bool(stratum)) & (group == code)
                if not cell.any():
                    continue
                assert (summary.query[entry], summary.stratum[entry], summary.group[entry]) == (place, stratum, code)
                assert summary.count[entry] == cell.sum()
                for cut, k in enumerate((1, 2)):
                    x = [np.clip(k - a, 0, t) / t for a, t in zip(above[cell], tied[cell], strict=True)]
                    assert summary.sums[0, cut, entry] == pytest.approx(sum(x))
                    assert summary.squares[0, cut, entry] == pytest.approx(sum(v * v for v in x))
                    gain = [0.0, *(1 / np.log2(1 + rank) if rank <= k else 0.0 for rank in range(1, 12))]
                    e = [
                        np.mean([gain[rank] for rank in range(a + 1, a + t + 1)])
                        for a, t in zip(above[cell], tied[cell], strict=True)
                    ]
                    assert summary.sums[1, cut, entry] == pytest.approx(sum(e))
                entry += 1
    assert entry == len(summary.key)


def test_saved_and_loaded(tmp_path):
    scores, data, user = rows()
    summary = Summary.of(scores, data, [1, 3], cluster=(user, np.char.add(user, "x")))
    summary.save(tmp_path / "s.npz")
    again = Summary.load(tmp_path / "s.npz")
    assert as_text(er.audit(again)) == as_text(er.audit(summary))
    assert again.cluster_names == ("cluster 1", "cluster 2")


def test_damaged_files_are_one_clear_line(tmp_path):
    scores, data, _ = rows()
    path = tmp_path / "s.npz"
    Summary.of(scores, data, [1]).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(er.DataError, match=r"s\.npz: is no summary of an audit, or is damaged"):
        Summary.load(path)
    with np.load(_written(tmp_path, content)) as archive:
        arrays = dict(archive)
    arrays["count"] = arrays["count"] + 1
    np.savez(path, **arrays)
    with pytest.raises(er.DataError, match="do not fit together"):
        Summary.load(path)
    header = json.loads(str(arrays["header"])) | {"version": 99}
    np.savez(path, **(arrays | {"header": np.array(json.dumps(header))}))
    with pytest.raises(er.DataError, match="version 2 is needed; got 99"):
        Summary.load(path)
    with pytest.raises(er.DataError, match="there is no such file"):
        Summary.load(tmp_path / "none.npz")


def _written(folder, content):
    path = folder / "whole.npz"
    path.write_bytes(content)
    return path


def test_what_does_not_fit_is_refused():
    scores, data, user = rows()
    summary = Summary.of(scores, data, [1, 3])
    with pytest.raises(er.DataError, match="a list must be whole in one part; query 0 is in two parts"):
        summary.merge(summary)
    with pytest.raises(er.DataError, match="cut-offs; got"):
        summary.merge(Summary.of(scores, data, [1]))
    with pytest.raises(er.DataError, match="clusterings; got"):
        summary.merge(Summary.of(scores, data, [1, 3], cluster=user))
    with pytest.raises(er.DataError, match="a list must be in one cluster; query"):
        Summary.of(scores, data, [1], cluster=np.arange(data.n_rows))
    with pytest.raises(er.ConfigError, match="needs scores and data, or a summary"):
        er.audit(scores)
    with pytest.raises(er.ConfigError, match="need rows; a summary has none"):
        er.audit(summary, against=scores)


def test_ids_of_numbers_and_text_are_the_same_items():
    numbers = np.array([5, 12, 100_000, -3])
    assert np.array_equal(hashed(numbers), hashed(numbers.astype(str)))
    assert np.array_equal(hashed(numbers), hashed(np.array(["5", "12", "100000", "-3"], object)))
    assert np.array_equal(hashed(numbers), hashed(numbers.astype(float)))
    many = np.array([f"item-{number}" for number in range(200_000)])
    assert len(np.unique(hashed(many))) == len(many)


def test_weights_and_soft_groups_are_audited_without_exact_laws():
    scores, data, _ = rows()
    chances = np.random.default_rng(0).dirichlet([1, 1], data.n_rows)
    soft = er.audit(scores, data.with_membership(chances, ["x", "y"]), [1, 3])
    assert {pair.within_query.method for pair in soft.pairs} <= {"cluster t", "none"}
    assert soft.text()


def test_the_unit_of_weights_does_not_matter():
    scores, data, _ = rows()
    weight = np.random.default_rng(1).random(data.n_rows)
    labels = np.array([*data.group_names, None], object)[data.group]
    audits = [
        er.audit(
            data.to_stored(scores),
            er.RankingData.from_arrays(
                data.features, data.relevance, labels, data.query_ids[data.query_of_row], sample_weight=weight * unit
            ),
            [1, 3],
        )
        for unit in (1.0, 2.0**-12)
    ]
    one, other = ([(pair.pooled.p, pair.within_query.p) for pair in audit.pairs] for audit in audits)
    assert np.allclose(one, other, rtol=1e-6)
    assert audits[0].verdict == audits[1].verdict


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("ks", [1, 2**64]),
        ("ks", [1, 10**400]),
        ("groups", "abcd"),
        ("groups", ["a", "b", "c", "\ud800"]),
        ("lengths", 2**62),
        ("quality", 1e308),
        ("weight", -1.0),
        ("relevant", 10**6),
    ],
)
def test_forged_numbers_that_no_rows_have_are_one_clear_line(tmp_path, part, value):
    """With a digest made anew; they ended in errors of numpy and of Python."""
    scores, data, user = rows()
    Summary.of(scores, data, [1, 3], cluster=user).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    if part in header:
        header[part] = value
    else:
        arrays[part].flat[3] = value
    header["check"] = summary_file._digest(arrays)
    np.savez(tmp_path / "s.npz", header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(er.DataError, match="do not fit together"):
        Summary.load(tmp_path / "s.npz")


def test_ends_beyond_all_numbers_are_endless():
    """With two clusters Student's t at the confidence of many tests is hundreds of times that of one."""
    gap = SimpleNamespace(
        decidable=True, freedom=1.0, difference=0.1, low=-0.5, high=0.6, ratio=2.0, ratio_low=0.01, ratio_high=400.0
    )
    low, high, ratio_low, ratio_high = pairs._wider(gap, 0.95, 0.9999)
    assert (low, high) == (-1, 1)
    assert (ratio_low, ratio_high) == (0, np.inf)
