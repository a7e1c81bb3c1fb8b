import gzip
import json
import random
import shutil
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.datasets.msmarco_files import Passage, Record, read_records
from evenrank.datasets.msmarco_rows import GROUPINGS, Rows, domain_suffix
from evenrank.errors import ConfigError, DataError, DataWarning

RECORDS = [
    Record(
        100 + i,
        f'what is "{i}"? é 😀 \\ \n',
        [
            Passage(j == i % 3, f"Passage {j} of {i}: naïve “text” {'word ' * ((i * j) % 40)}", url)
            for j, url in enumerate(
                [f"http://a{i}.com/x", f"https://b.org:80/{i}", None, "http://c.co.uk"][: 1 + i % 4]
            )
        ],
    )
    for i in range(25)
]


class Letters:
    """A vector of texts that knows query from passage: nothing learnt, but real enough to see rows mixed up."""

    fingerprint = "letters-1"
    width = 3
    calls = 0

    def encode(self, queries, passages):
        self.calls += 1
        return np.array([vector(q, p) for q, p in zip(queries, passages, strict=True)], np.float32)


def vector(query, passage):
    return [zlib.crc32(text.encode()) % 2048 / 8 for text in (query, passage)] + [len(passage)]


def passages_list(record):
    found = [{"is_selected": int(p.selected), "passage_text": p.text, "url": p.url} for p in record.passages]
    return [{k: v for k, v in p.items() if v is not None} for p in found]


def passages_columns(record):
    return {
        "is_selected": [int(p.selected) for p in record.passages],
        "passage_text": [p.text for p in record.passages],
        "url": [p.url or "" for p in record.passages],
    }


def as_objects(records, passages=passages_list):
    return [{"answers": ["a"], "passages": passages(r), "query": r.query, "query_id": r.query_id} for r in records]


OFFICIAL = ("answers", "passages", "query", "query_id", "query_type", "wellFormedAnswers")


def as_columns(records, order=OFFICIAL, seed=None):
    rows = list(range(len(records)))
    values = {
        "answers": ["x"],
        "query_type": "NUMERIC",
        "wellFormedAnswers": "[]",
    }
    table = {}
    for name in order:
        if seed is not None and name != "passages":
            random.Random(seed).shuffle(rows)
        one = {
            "passages": lambda i: passages_list(records[i]),
            "query": lambda i: records[i].query,
            "query_id": lambda i: records[i].query_id,
        }.get(name, lambda i, name=name: values[name])
        table[name] = {str(1000 + i): one(i) for i in (sorted(rows) if name == "passages" else rows)}
    return table


def write(path, value, *, compress=False, ascii_only=True, indent=None):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    path.write_bytes(gzip.compress(text) if compress else text)
    return path


def write_lines(path, objects, *, compress=False):
    text = "".join(json.dumps(found) + "\n" for found in objects).encode()
    path.write_bytes(gzip.compress(text) if compress else text)
    return path


# ---------------------------------------------------------------------- layouts


@pytest.mark.parametrize("chunk", [1, 13, 500, 1 << 20])
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize(
    "order",
    [
        OFFICIAL,
        ("query_id", "query", "passages"),
        ("wellFormedAnswers", "query", "answers", "passages", "query_id"),
    ],
)
def test_official_layout(tmp_path, chunk, compress, seed, order):
    path = write(tmp_path / "train.json", as_columns(RECORDS, order, seed), compress=compress, ascii_only=seed is None)
    assert list(read_records(path, chunk=chunk)) == RECORDS
    assert list(read_records(path, chunk=chunk, limit=4)) == RECORDS[:4]


def test_official_layout_with_an_empty_first_column(tmp_path):
    table = {"answers": {}} | as_columns(RECORDS, ("passages", "query", "query_id"))
    assert list(read_records(write(tmp_path / "a.json", table))) == RECORDS


@pytest.mark.parametrize("chunk", [1, 50, 1 << 20])
@pytest.mark.parametrize("passages", [passages_list, passages_columns])
@pytest.mark.parametrize("compress", [False, True])
def test_lines_and_arrays(tmp_path, chunk, passages, compress):
    objects = as_objects(RECORDS, passages)
    lines = write_lines(tmp_path / "a.jsonl", objects, compress=compress)
    plain = write(tmp_path / "a.json", objects, compress=compress)
    spread = write(tmp_path / "b.json", objects, compress=compress, ascii_only=False, indent=2)
    for path in (lines, plain, spread):
        assert list(read_records(path, chunk=chunk)) == RECORDS
        assert list(read_records(path, chunk=chunk, limit=2)) == RECORDS[:2]


def test_a_record_whose_first_key_holds_an_object_is_not_taken_for_columns(tmp_path):
    objects = [{"passages": passages_columns(r), "query": r.query, "query_id": r.query_id} for r in RECORDS]
    assert list(read_records(write_lines(tmp_path / "a.jsonl", objects))) == RECORDS


@pytest.mark.parametrize("passages", [passages_list, passages_columns])
def test_parquet_by_content(tmp_path, passages, monkeypatch):
    monkeypatch.setattr("evenrank.datasets.msmarco_files.PARQUET_ROWS", 7)
    path = tmp_path / "a.bin"
    pl.DataFrame(as_objects(RECORDS, passages)).write_parquet(path)
    assert list(read_records(path)) == RECORDS
    assert list(read_records(path, limit=9)) == RECORDS[:9]


# ---------------------------------------------------------------------- errors


GOOD = as_objects(RECORDS[3:4])[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": None}, r"a\.jsonl:2: 'query' is needed and is empty\."),
        ({"query": 5}, r"a\.jsonl:2: 'query' must be a text; got 5\."),
        ({"query_id": 1.5}, r"a\.jsonl:2: 'query_id' must be a whole number or a text; got 1\.5\."),
        ({"passages": 3}, r"a\.jsonl:2: 'passages' must be a list of passages or an object of lists; got 3\."),
        (
            {"passages": [{"is_selected": 1}]},
            r"a\.jsonl:2: 'passage_text' is needed in the passages; they have 'is_sel",
        ),
        (
            {"passages": [{"passage_text": ""}]},
            r"a\.jsonl:2: 'is_selected' is needed .* The evaluation file has no judge",
        ),
        ({"passages": [{"passage_text": "", "is_selected": 2}]}, r"a\.jsonl:2: 'is_selected' must be 0 or 1; got 2\."),
        ({"passages": [{"passage_text": None, "is_selected": 1}]}, r"'passage_text' must be a text; got None\."),
        ({"passages": [{"passage_text": "", "is_selected": 1, "url": 1}]}, r"'url' must be a text; got 1\."),
        ({"passages": {"passage_text": ["", ""], "is_selected": [1]}}, r"'is_selected' of the passages must be a list"),
        ({"passages": ["x"]}, r"each passage must be an object; got 'x'\."),
    ],
)
def test_a_record_that_breaks_a_rule_is_placed(tmp_path, change, message):
    path = write_lines(tmp_path / "a.jsonl", [as_objects(RECORDS[:1])[0], GOOD | change])
    with pytest.raises(DataError, match=message):
        list(read_records(path))


def test_absent_keys_and_columns_are_named(tmp_path):
    bad = {key: value for key, value in GOOD.items() if key != "query_id"}
    with pytest.raises(
        DataError, match=r"a.json:1: 'query_id' is needed and is absent; the record has 'answers', 'pass"
    ):
        list(read_records(write(tmp_path / "a.json", [bad])))
    with pytest.raises(DataError, match=r"b.json: column 'query_id' is needed; the file has 'query', 'passages'\."):
        list(read_records(write(tmp_path / "b.json", as_columns(RECORDS, ("query", "passages")))))
    table = as_columns(RECORDS)
    del table["query"]["1007"]
    with pytest.raises(DataError, match=r"c.json: row 1007 is in column 'passages' but not in 'query'\."):
        list(read_records(write(tmp_path / "c.json", table)))
    table = as_columns(RECORDS)
    table["passages"]["1002"] = "x"
    with pytest.raises(DataError, match=r"d.json: row 1002: 'passages' must be a list"):
        list(read_records(write(tmp_path / "d.json", table)))
    pl.DataFrame({"query": ["a"], "query_id": [1]}).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(DataError, match=r"e.parquet: column 'passages' is needed; the file has 'query', 'query_id'\."):
        list(read_records(tmp_path / "e.parquet"))


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.999])
@pytest.mark.parametrize("compress", [False, True])
def test_cut_files_are_told(tmp_path, share, compress):
    path = write(tmp_path / "a.json", as_columns(RECORDS), compress=compress)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(20, int(len(whole) * share))])
    with pytest.raises(DataError, match=r"a\.json.* cut short"):
        list(read_records(path, chunk=100))


def test_empty_absent_and_strange_files(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(DataError, match="no such file"):
        list(read_records(path))
    path.write_text(" \n")
    with pytest.raises(DataError, match="the file is empty"):
        list(read_records(path))
    path.write_text("query,passage\n")
    with pytest.raises(DataError, match="an object or an array is needed; got 'q'"):
        list(read_records(path))
    path.write_text("[1]")
    with pytest.raises(DataError, match=r"a\.json:1: each record must be an object; got 1\."):
        list(read_records(path))
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match="not a Parquet file, or is damaged"):
        list(read_records(path))


# ---------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("url", "suffix"),
    [
        ("http://www.a.com/b.org", "com"),
        ("HTTPS://WWW.A.ORG", "org"),
        ("http://a.com.:8080/", "com"),
        ("http://user:pa@ss@a.gov/x", "gov"),
        ("//a.edu/x", "edu"),
        ("a.net/x", "net"),
        ("a.net:443/x", "net"),
        ("a.com?next=http://b.org", "com"),
        ("a.com#http://b.org", "com"),
        ("  http://a.com ", "com"),
        ("http://a.co.uk", "uk"),
        ("http://a.com.au/", "au"),
        ("http://10.1.2.3/a.com", ""),
        ("http://[::1]:80/a.com", ""),
        ("http://localhost:80/a.com", ""),
        ("http:///a.com", None),
        ("", None),
        (None, None),
    ],
)
def test_domain_suffix(url, suffix):
    assert domain_suffix(url) == suffix


def slow_groups(records, grouping):
    """By the ends of hosts, as a reader of these addresses would see them."""
    first = "/".join("." + suffix for suffix in GROUPINGS[grouping])
    hosts = [p.url and p.url.split("/")[2].split(":")[0] for r in records for p in r.passages]
    return [h and (first if h.endswith(tuple("." + s for s in GROUPINGS[grouping])) else "other") for h in hosts]


# ---------------------------------------------------------------------- data


def named_groups(data):
    return [None if code < 0 else data.group_names[code] for code in data.group.tolist()]


def test_groupings_share_features_and_rows_are_those_of_the_file(tmp_path):
    path = write(tmp_path / "train.json", as_columns(RECORDS, seed=1))
    both = er.datasets.msmarco_groupings(path, encoder=Letters())
    assert list(both) == ["com", "ext"]
    assert both["com"].features is both["ext"].features
    data = both["com"]
    assert data.query_ids.tolist() == [r.query_id for r in RECORDS]
    assert data.item_ids.tolist() == [f"{r.query_id}-{j}" for r in RECORDS for j in range(len(r.passages))]
    assert data.relevance.tolist() == [float(p.selected) for r in RECORDS for p in r.passages]
    expected = np.array([vector(r.query, p.text) for r in RECORDS for p in r.passages], np.float16)
    np.testing.assert_array_equal(data.features, expected)
    assert isinstance(data.features, np.memmap)
    assert not data.features.flags.writeable
    assert data.feature_names == ("e0", "e1", "e2")
    for grouping, found in both.items():
        assert named_groups(found) == slow_groups(RECORDS, grouping)
    assert both["ext"].group_names == (".com/.org/.gov/.edu/.net", "other")
    lengths = [len(r.passages) for r in RECORDS]
    assert data.query_ptr.tolist() == np.concatenate([[0], np.cumsum(lengths)]).tolist()


def test_what_is_built_equals_what_the_checks_would_build(tmp_path):
    path = write(tmp_path / "a.json", as_objects(RECORDS))
    data = er.datasets.msmarco(path, "ext", Letters())
    again = er.RankingData.from_arrays(
        data.features,
        data.relevance,
        named_groups(data),
        np.repeat(data.query_ids, data.lengths),
        item_ids=data.item_ids,
        feature_names=data.feature_names,
    )
    for name in ("features", "relevance", "group", "query_ptr", "query_ids", "item_ids"):
        one, two = getattr(data, name), getattr(again, name)
        np.testing.assert_array_equal(one, two)
        assert one.dtype == two.dtype
    assert data.group_names == again.group_names
    assert isinstance(again.features, np.memmap)
    scores = data.features[:, 0].astype(float)
    assert er.measure(scores, data, "dp@1") == er.measure(scores, again, "dp@1")


def test_layouts_give_the_same_data_and_shards_are_read_as_one(tmp_path):
    whole = er.datasets.msmarco(write(tmp_path / "a.json", as_columns(RECORDS)), encoder=Letters())
    shards = []
    for i, part in enumerate((RECORDS[:10], RECORDS[10:])):
        shards.append(tmp_path / f"{i}.parquet")
        pl.DataFrame(as_objects(part, passages_columns)).write_parquet(shards[-1])
    parts = er.datasets.msmarco(shards, encoder=Letters())
    np.testing.assert_array_equal(whole.features, parts.features)
    assert whole.item_ids.tolist() == parts.item_ids.tolist()
    twelve = er.datasets.msmarco(shards, encoder=Letters(), limit=12)
    assert twelve.query_ids.tolist() == whole.query_ids[:12].tolist()


def test_text_ids_and_mixed_ids(tmp_path):
    text = [r._replace(query_id=f"q{r.query_id}") for r in RECORDS[:3]]
    data = er.datasets.msmarco(write(tmp_path / "a.json", as_objects(text)), encoder=Letters())
    assert data.query_ids.tolist() == ["q100", "q101", "q102"]
    assert data.item_ids[:2].tolist() == ["q100-0", "q101-0"]
    mixed = [RECORDS[0]._replace(query_id=7), RECORDS[1]._replace(query_id="7")]
    with pytest.raises(DataError, match="must be a number everywhere or a text"):
        er.datasets.msmarco(write(tmp_path / "b.json", as_objects(mixed)), encoder=Letters())


def test_queries_without_passages_are_left_out_with_a_warning(tmp_path):
    path = write(tmp_path / "a.json", as_objects([RECORDS[0], RECORDS[1]._replace(passages=[]), RECORDS[2]]))
    with pytest.warns(DataWarning, match="1 queries have no passages and are left out"):
        data = er.datasets.msmarco(path, encoder=Letters())
    assert data.query_ids.tolist() == [100, 102]
    path = write(tmp_path / "b.json", as_objects([RECORDS[1]._replace(passages=[])]))
    with pytest.warns(DataWarning), pytest.raises(DataError, match="no query has a passage"):
        er.datasets.msmarco(path, encoder=Letters())


def test_a_query_that_occurs_twice_is_refused_before_any_encoding(tmp_path):
    encoder = Letters()
    with pytest.raises(DataError, match=r"query_id 100 occurs twice"):
        er.datasets.msmarco(write(tmp_path / "a.json", as_objects([RECORDS[0], RECORDS[0]])), encoder=encoder)
    assert encoder.calls == 0


def test_half_a_surrogate_pair_does_no_harm(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(
        '[{"query_id": 1, "query": "\\ud83d", "passages": [{"is_selected": 0, "passage_text": "a\\ude00b"}]}]'
    )
    data = er.datasets.msmarco(path, encoder=Letters())
    assert data.features.tolist() == [np.float16(vector("?", "a?b")).tolist()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grouping": "net"}, "grouping must be one of com, ext; got 'net'"),
        ({"limit": 0}, "limit must be a whole number ≥ 1; got 0"),
        ({"limit": True}, "limit must be a whole number ≥ 1; got True"),
        ({"encoder": 3}, "encoder must be a folder, a name or an object with fingerprint, width and encode; got int"),
        ({"encoder": "no/such/folder"}, "encoder must be a folder, an installed package"),
    ],
)
def test_options_are_checked(tmp_path, options, message):
    path = write(tmp_path / "a.json", as_objects(RECORDS))
    with pytest.raises(ConfigError, match=message):
        er.datasets.msmarco(path, **({"encoder": Letters()} | options))


def test_no_file_and_no_grouping(tmp_path):
    with pytest.raises(ConfigError, match="at least one file"):
        er.datasets.msmarco([], encoder=Letters())
    with pytest.raises(ConfigError, match="groupings must be a list of names"):
        er.datasets.msmarco_groupings(write(tmp_path / "a.json", as_objects(RECORDS)), "com", Letters())


# ---------------------------------------------------------------------- the cache


def test_the_cache_is_computed_once_and_needs_no_file_parsing_again(tmp_path, monkeypatch):
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    encoder, seen = Letters(), []
    first = er.datasets.msmarco(path, "com", encoder, progress=seen.append)
    assert seen[0] == 0
    assert seen[-1] == 1
    assert encoder.calls == 1

    def refuse(*arguments, **options):
        raise AssertionError("the file was parsed again")

    monkeypatch.setattr("evenrank.datasets.msmarco_rows.read_records", refuse)
    again = er.datasets.msmarco(path, "com", encoder)
    assert encoder.calls == 1
    np.testing.assert_array_equal(first.features, again.features)
    assert first.item_ids.tolist() == again.item_ids.tolist()
    assert first.group.tolist() == again.group.tolist()


def folders(folder):
    return sorted(path.name for path in Path(folder).iterdir() if path.is_dir())


def test_another_encoder_data_or_limit_is_another_cache(tmp_path):
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    cache = tmp_path / "caches" / "mine"
    first = er.datasets.msmarco(path, encoder=Letters(), cache=cache)
    kept = first.features.tolist()
    other = Letters()
    other.fingerprint = "letters-2"
    er.datasets.msmarco(path, encoder=other, cache=cache)
    er.datasets.msmarco(path, encoder=Letters(), cache=cache, limit=3)
    write(path, as_columns(RECORDS[::-1]))
    er.datasets.msmarco(path, encoder=Letters(), cache=cache)
    found = folders(cache)
    assert len(found) == 4
    assert all(name.startswith("a.json.embeddings-") for name in found)
    assert first.features.tolist() == kept
    assert folders(tmp_path) == ["caches"]


def test_the_default_cache_is_beside_the_data_or_the_users(tmp_path, monkeypatch):
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    er.datasets.msmarco(path, encoder=Letters())
    assert len(folders(tmp_path)) == 1
    home = tmp_path / "home"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setenv("LOCALAPPDATA", str(home))
    monkeypatch.setattr("os.access", lambda *arguments, **options: False)
    other = Letters()
    other.fingerprint = "letters-2"
    er.datasets.msmarco(path, encoder=other)
    assert len(folders(home / "evenrank")) == 1


def test_a_cache_that_cannot_be_written_is_told(tmp_path):
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    with pytest.raises(ConfigError, match=r"a\.json\.embeddings-.*: cannot be written .* Choose another cache"):
        er.datasets.msmarco(path, encoder=Letters(), cache=path)


def arrays(data):
    return [np.array(part) for part in (data.features, data.relevance, data.group, data.query_ids, data.item_ids)]


@pytest.fixture
def cached(tmp_path):
    """A file, its cache's folder, and what it gives."""
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    expected = arrays(er.datasets.msmarco(path, encoder=Letters(), cache=tmp_path / "cache"))
    (folder,) = (tmp_path / "cache").iterdir()
    return path, folder, expected


def assert_served(path, folder, expected, *, calls):
    encoder = Letters()
    found = arrays(er.datasets.msmarco(path, encoder=encoder, cache=folder.parent))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert encoder.calls == calls


def test_damaged_vectors_are_computed_again(cached):
    path, folder, expected = cached
    vectors = bytearray((folder / "embeddings.f16").read_bytes())
    vectors[1] ^= 0x40  # the highest bit of a float16's exponent: 1.0 becomes inf
    (folder / "embeddings.f16").write_bytes(vectors)
    with pytest.warns(DataWarning, match="1 of 1 finished blocks are damaged and computed again"):
        assert_served(path, folder, expected, calls=1)
    assert_served(path, folder, expected, calls=0)


def cut_rows(path):
    path.write_bytes(path.read_bytes()[:-30])


def flip_relevance(path):
    content = path.read_bytes()
    place = content.index(b"relevance.npy") + 200
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])


def empty_rows(path):
    path.write_bytes(b"")


def other_rows(path):
    """Rows that fit together but are not those of the file, with the digest of other data."""
    with np.load(path) as content:
        parts = dict(content)
    np.savez(path, **{**parts, "relevance": 1 - parts["relevance"]})


def shorter_rows(path):
    with np.load(path) as content:
        parts = dict(content)
    np.savez(path, **{**parts, "query_ids": parts["query_ids"][:-1]})


def rows_without_a_digest(path):
    with np.load(path) as content:
        parts = dict(content)
    del parts["check"]
    np.savez(path, **parts)


@pytest.mark.parametrize(
    "damage", [cut_rows, flip_relevance, empty_rows, other_rows, shorter_rows, rows_without_a_digest]
)
def test_damaged_rows_are_made_again(cached, damage):
    path, folder, expected = cached
    damage(folder / "rows.npz")
    with pytest.warns(DataWarning, match=r"rows.npz: is damaged, and made again from the data"):
        assert_served(path, folder, expected, calls=0)
    assert_served(path, folder, expected, calls=0)


def test_rows_of_another_file_are_not_served(cached, tmp_path):
    path, folder, expected = cached
    changed = [record._replace(query_id=record.query_id + 1000) for record in RECORDS]
    other = write(tmp_path / "b.json", as_columns(changed))
    er.datasets.msmarco(other, encoder=Letters(), cache=tmp_path / "others")
    (others,) = (tmp_path / "others").iterdir()
    shutil.copyfile(others / "rows.npz", folder / "rows.npz")
    with pytest.warns(DataWarning, match=r"rows.npz: is damaged"):
        assert_served(path, folder, expected, calls=0)


def test_a_cache_of_the_format_before_needs_no_encoder(cached):
    path, folder, expected = cached
    rows_without_a_digest(folder / "rows.npz")
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "format": 1}))
    checksum = zlib.crc32((folder / "embeddings.f16").read_bytes())
    (folder / "progress.txt").write_text(f"0 {checksum:08x} 0.100\n")
    assert_served(path, folder, expected, calls=0)
    shorter_rows(folder / "rows.npz")
    with pytest.warns(DataWarning, match=r"rows.npz: is damaged"):
        assert_served(path, folder, expected, calls=0)


def test_importing_the_datasets_loads_nothing_heavy():
    code = "import evenrank.datasets, sys; print({'polars', 'onnx', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


# ---------------------------------------------------------------------- titles


def test_titles(tmp_path):
    path = write(tmp_path / "a.json", as_columns(RECORDS))
    queries, items = er.datasets.msmarco_titles(path)
    data = er.datasets.msmarco(path, encoder=Letters())
    assert list(queries) == data.query_ids.tolist()
    assert list(items) == data.item_ids.tolist()
    assert queries[103] == RECORDS[3].query
    assert items["103-0"].startswith("http://a3.com/x: Passage 0 of 3: naïve “text”")
    assert items["106-2"].startswith("Passage 2 of 6")
    assert max(len(title.partition(": P")[2]) for title in items.values()) <= 119
    assert items["123-3"].endswith("word…")
    few, _ = er.datasets.msmarco_titles(path, 2)
    assert list(few) == [100, 101]


def test_the_sample_has_the_shares_its_description_gives(shared_data, tmp_path):
    path = shared_data("msmarco_v1.1_sample200") / "ms_marco_sample.json"
    both = er.datasets.msmarco_groupings(path, encoder=Letters(), cache=tmp_path)
    data = both["com"]
    assert (data.n_queries, data.n_rows) == (200, 1629)
    assert round(np.mean(data.group == 1), 2) == 0.37
    assert round(np.mean(both["ext"].group == 1), 2) == 0.07
    assert np.count_nonzero(np.add.reduceat(data.relevance, data.query_ptr[:-1])) == 189


def test_rows_whose_parts_are_no_arrays_are_damaged(tmp_path: Path) -> None:
    parts = dict.fromkeys(Rows.__dataclass_fields__, b"no array")
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)
    assert Rows.load(tmp_path / "rows.npz", "data", bound=False) is None
