"""Run folders that were damaged, edited or mixed up: what is refused in one line, what is left out, what is redone."""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment.about import Blocks
from evenrank.experiment.plan import Runner
from fuzz import run_folders

ASKED = {"methods": ["amortized", "fastar"], "notions": ["dp"], "strengths": [0, 0.1], "ks": [2], "folds": 3}
DEEP = b"[" * 100_000 + b"]" * 100_000


def rows(seed: int):
    """Twelve lists of eight, each with relevant and other items of both groups."""
    number = np.arange(96)
    features = np.random.default_rng(seed).normal(size=(96, 2))
    return er.RankingData.from_arrays(features, number // 2 % 2, number % 2, number // 8)


DATA = rows(0)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    er.sweep(DATA, out=folder, examples=3, **ASKED)
    return folder


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """The same command on other rows: all its files have the form of those of `finished`."""
    folder = tmp_path_factory.mktemp("foreign") / "run"
    er.sweep(rows(1), out=folder, examples=3, **ASKED)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def trained(monkeypatch):
    """The blocks that are run while the test goes on."""
    seen = []
    original = Runner.run

    def counted(self, block):
        seen.append((block.method, block.fold))
        return original(self, block)

    monkeypatch.setattr(Runner, "run", counted)
    return seen


def table(sweep):
    return sweep.frame().drop("seconds")


def resume(folder):
    return er.sweep(DATA, out=folder, examples=3, **ASKED)


def lines(folder):
    return (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)


def write_lines(folder, changed):
    (folder / "journal.jsonl").write_bytes(b"".join(changed))


def sealed(record, run_id) -> bytes:
    """A line as the journal has it, written here once more."""
    text = json.dumps(record)
    bound = f'"run": "{run_id}", ' if run_id else ""
    return f'{{"check": {zlib.crc32((bound + text).encode())}, {bound}"record": {text}}}\n'.encode()


def forge(folder, number, change) -> None:
    """Change the record of a line (from 0), with the checksum that then belongs to it."""
    changed = lines(folder)
    content = json.loads(changed[number])
    change(content["record"])
    changed[number] = sealed(content["record"], content.get("run"))
    write_lines(folder, changed)


def unbind(folder) -> None:
    """Make the folder one of format 1, which had no ids."""
    config = json.loads((folder / "config.json").read_bytes())
    del config["id"]
    (folder / "config.json").write_text(json.dumps({**config, "format": 1}))
    write_lines(folder, [sealed(json.loads(line)["record"], None) for line in lines(folder)])
    (folder / "examples.json").write_text(json.dumps(json.loads((folder / "examples.json").read_bytes())["record"]))


# ---------------------------------------------------------------------- the journal


@pytest.mark.parametrize("damage", [b"\n", b"{}\n", b'{"check": 1, "record": {}}\n', DEEP + b"\n", b"\xff\0\n"])
@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_damaged_line_costs_its_own_block_only(run, finished, trained, number, damage):
    whole = table(er.Sweep.load(finished))
    kept = lines(run)
    write_lines(run, [*kept[:number], damage, *kept[number + 1 :]])
    with (
        pytest.warns(DataWarning, match=rf"journal.jsonl, line {number + 1}: damaged and left out"),
        pytest.warns(DataWarning, match="the run is not finished, 5 of 6 blocks are done"),
    ):
        part = er.Sweep.load(run)
    assert len(part) == 10
    assert len(table(part).join(whole, on=whole.columns, how="inner", nulls_equal=True)) == 10
    with pytest.warns(DataWarning, match=rf"line {number + 1}: damaged and left out"):
        assert table(resume(run)).equals(whole, null_equal=True)
    lost = json.loads(kept[number])["record"]["block"]
    assert trained == [(lost["method"], lost["fold"])]
    assert lines(run)[:5] == kept[:number] + kept[number + 1 :]
    assert table(er.Sweep.load(run)).equals(whole, null_equal=True)  # mended: nothing is left to warn of


def test_several_damaged_lines_are_one_warning(run):
    write_lines(run, [b"\n", b"\n", b"\n", *lines(run)[3:]])
    with pytest.warns(DataWarning) as caught:
        er.Sweep.load(run)
    said = [str(one.message) for one in caught]
    assert sum("line 1 and 2 more: damaged and left out" in text for text in said) == 1
    assert len(said) == 2


def test_a_line_end_lost_costs_two_blocks(run, finished, trained):
    kept = lines(run)
    write_lines(run, [kept[0].rstrip(b"\n"), *kept[1:]])
    with pytest.warns(DataWarning, match="line 1: damaged and left out"):
        assert table(resume(run)).equals(table(er.Sweep.load(finished)), null_equal=True)
    assert len(trained) == 2


def test_every_flipped_bit_of_a_line_is_seen(run, finished):
    """Each bit of a line's frame and of some of its values."""
    whole = table(er.Sweep.load(finished))
    kept = lines(run)
    places = [*range(90), *range(90, len(kept[2]), 97)]
    for place in places:
        for bit in range(8):
            damaged = bytearray(kept[2])
            damaged[place] ^= 1 << bit
            write_lines(run, [*kept[:2], bytes(damaged), *kept[3:]])
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                part = table(er.Sweep.load(run))
            assert "line 3" in str(caught[0].message)
            assert len(part) == 10
            assert part.equals(whole.filter((whole["method"] != "amortized") | (whole["fold"] != 1)), null_equal=True)


def test_the_order_of_lines_does_not_matter_and_a_doubled_one_counts_once(run, finished, trained):
    kept = lines(run)
    write_lines(run, [kept[2], *kept[::-1], kept[0]])
    whole = er.Sweep.load(finished)
    assert table(er.Sweep.load(run)).equals(table(whole), null_equal=True)
    assert er.Sweep.load(run).about.blocks == Blocks(done=6, asked=6)
    assert table(resume(run)).equals(table(whole), null_equal=True)
    assert trained == []
    assert len(lines(run)) == 6
    forge(run, 0, lambda record: record.update(seconds=99.0))  # run twice, as two machines might
    write_lines(run, [*lines(run), kept[2]])
    assert table(er.Sweep.load(run)).equals(table(whole), null_equal=True)


def test_a_block_with_two_results_is_refused(run):
    write_lines(run, [*lines(run), lines(run)[1]])
    forge(run, 6, lambda record: record["table"][0]["values"].update({"ndcg@2": [0.1, 0.2]}))
    for use in (er.Sweep.load, resume):
        with pytest.raises(
            DataError, match=r"journal.jsonl, line 7: must have the values of line 2, which is the same"
        ):
            use(run)


def test_the_journal_of_another_run_is_recognised(run, foreign):
    kept = lines(run)
    for changed, number in ((lines(foreign), 1), ([*kept[:3], lines(foreign)[3], *kept[4:]], 4)):
        write_lines(run, changed)
        before = {path.name: path.read_bytes() for path in run.iterdir()}
        for use in (er.Sweep.load, resume):
            with pytest.raises(DataError, match=rf"journal.jsonl, line {number}: belongs to another run"):
                use(run)
        assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.pop("block"), r"its content must be an object with 'block'; found \["),
        (
            lambda r: r["block"].update(fold=7),
            r'block must be one that the run asked for; found {"method": .*"fold": 7',
        ),
        (lambda r: r["block"].update(fold=True), r"block.fold must be a whole number in .*; found true"),
        (lambda r: r["block"].update(fold=10**30), r"block.fold must be a whole number in .*; found 1000"),
        (lambda r: r["table"].clear(), r"table must be a list of at least 1; found \[\]"),
        (lambda r: r["table"].append(r["table"][0]), r"table must be one part per grouping and notion"),
        (lambda r: r["table"][0].update(notion="eod"), r"table\[0\].notion must be one of .*; found \"eod\""),
        (lambda r: r["table"][0].update(grouping=None), r"table\[0\].grouping must be one of \"group\"; found nothing"),
        (lambda r: r["table"][0]["values"]["ndcg@2"].append(0.5), r"values.ndcg@2 must be a list of 2; found \[0"),
        (lambda r: r["table"][0]["values"].update({"ndcg@2": ["a", 1]}), r"values.ndcg@2\[0\] must be a finite number"),
        (
            lambda r: r["table"][0]["values"].update({"ndcg@2": [1.5, 1]}),
            r"ndcg@2\[0\] must be a number in 0 … 1; .* 1.5",
        ),
        (
            lambda r: r["table"][0]["values"].update({"ndcg@2": [10**400, 1]}),
            r"values.ndcg@2\[0\] must be a finite number",
        ),
        (
            lambda r: r["table"][0]["values"].update({"x@2": [0, 1]}),
            r"table.values must be measures of the run; found \"x@2",
        ),
        (
            lambda r: r["table"][0]["values"].pop("four_fifths@2"),
            r"table.values must be an object with 'four_fifths@2'",
        ),
        (
            lambda r: r["tops"][0].update(queries=[9]),
            r"tops\[0\].queries must be different numbers below 3; found \[9\]",
        ),
        (
            lambda r: r["tops"][0]["top"].update(shape=[1, 10**9, 2]),
            r"tops\[0\].top.shape must be .*; found \[1, 1000000000",
        ),
        (lambda r: r["tops"][0]["top"].update(zlib="eA=="), r"tops\[0\].top.zlib must be packed item numbers"),
        (lambda r: r["tops"][0]["top"].update(zlib="é"), r"tops\[0\].top.zlib must be packed item numbers"),
        (lambda r: r.update(seconds=-1), r"seconds must be a number in 0 …"),
        (lambda r: r.update(warnings="none"), r"warnings must be a list; found \"none\""),
    ],
)
def test_a_record_that_breaks_a_rule_is_placed(run, change, says):
    number = next(place for place, line in enumerate(lines(run)) if json.loads(line)["record"]["tops"])
    forge(run, number, change)
    for use in (er.Sweep.load, resume):
        with pytest.raises(DataError, match=rf"journal.jsonl, line {number + 1}: .*{says}") as caught:
            use(run)
        assert "\n" not in str(caught.value)


def test_packed_items_cannot_fill_the_memory_and_are_those_of_their_query(run):
    import base64

    bomb = base64.b64encode(zlib.compress(bytes(50_000_000), 9)).decode()
    number = next(place for place, line in enumerate(lines(run)) if json.loads(line)["record"]["tops"])
    kept = lines(run)
    forge(run, number, lambda record: record["tops"][0]["top"].update(zlib=bomb))
    with pytest.raises(DataError, match="packed item numbers that fill the shape"):
        er.Sweep.load(run)
    write_lines(run, kept)

    def beyond(record):
        shape = record["tops"][0]["top"]["shape"]
        items = np.full(shape, 8, "<i2")  # lists have eight items: 0 to 7
        record["tops"][0]["top"]["zlib"] = base64.b64encode(zlib.compress(items.tobytes())).decode()

    forge(run, number, beyond)
    with pytest.raises(DataError, match=r"tops\[0\].top.zlib must be items of query \d; found \[8, 8\]"):
        er.Sweep.load(run)


# ---------------------------------------------------------------------- the configuration


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["asked"]["strengths"].update(amortized=[0, 0.2]),
        lambda c: c["about"].update(rows=97),
        lambda c: c["about"]["groups"].update({"0": 0.9}),
        lambda c: c["made"].update(command="another"),
        lambda c: (
            c["asked"]["notions"].__setitem__(0, "equal_opportunity")
            or c["about"].update(notions=["equal_opportunity"])
        ),
        lambda c: c.pop("id"),
    ],
)
def test_a_configuration_that_was_changed_is_refused(run, change):
    config = json.loads((run / "config.json").read_bytes())
    change(config)
    (run / "config.json").write_text(json.dumps(config))
    for use in (er.Sweep.load, resume):
        with pytest.raises(DataError, match=r"config.json: was changed after the run began"):
            use(run)


def test_a_configuration_in_another_layout_is_the_same(run, finished):
    config = json.loads((run / "config.json").read_bytes())
    (run / "config.json").write_text(json.dumps(dict(reversed(config.items())), ensure_ascii=False))
    assert table(er.Sweep.load(run)).equals(table(er.Sweep.load(finished)), null_equal=True)


def test_the_configuration_of_another_run_is_recognised(run, foreign):
    shutil.copyfile(foreign / "config.json", run / "config.json")
    with pytest.raises(DataError, match=r"journal.jsonl, line 1: belongs to another run"):
        er.Sweep.load(run)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.pop("asked"), r"its content must be an object with 'asked'"),
        (lambda c: c.update(asked=[]), r"asked must be an object; found \[\]"),
        (lambda c: c["asked"].update(blocks=[]), r"asked.blocks must be a list of at least 1; found \[\]"),
        (
            lambda c: c["asked"]["blocks"].append(c["asked"]["blocks"][0]),
            r"asked.blocks must be a list whose entries differ",
        ),
        (lambda c: c["asked"]["blocks"][0].update(method="x"), r"asked.blocks: method must be one of .*; found \"x\""),
        (lambda c: c["asked"].update(ks=[2.0]), r"asked.ks\[0\] must be a whole number in .*; found 2.0"),
        (lambda c: c["asked"].update(ks=[0]), r"asked.ks\[0\] must be a whole number in .*; found 0"),
        (
            lambda c: c["asked"]["strengths"].update(amortized=[0.1, 0]),
            r"asked.strengths.amortized must be 0 and larger",
        ),
        (
            lambda c: c["asked"]["strengths"].update(amortized=[0, "1"]),
            r"asked.strengths.amortized\[1\] must be a finite",
        ),
        (lambda c: c["asked"]["strengths"].pop("fastar"), r"asked.strengths must be those of asked.methods"),
        (
            lambda c: c["asked"].update(places=10**12),
            r"asked.places must be a whole number in 1 … 1000; found 1000000000000",
        ),
        (
            lambda c: c["asked"].update(groupings=["\ud800"]),
            r"asked.groupings\[0\] must be a text without half characters",
        ),
        (
            lambda c: c["asked"].update(settings={"amortized": {"a": DEEP.decode()[:40]}}) or deepen(c),
            r"nested at most 20 deep",
        ),
        (lambda c: c["measures"].remove("ndcg@2"), r"measures must be a list with 'ndcg@2'"),
        (lambda c: c["measures"].append("seconds"), r"measures must be a name and one of @2; found \"seconds\""),
        (lambda c: c["about"].update(rows="many"), r"about.rows must be a whole number in .*; found \"many\""),
        (lambda c: c["about"].update(rows=2**60), r"about.rows must be a whole number"),
        (
            lambda c: c["about"].update(groups={"0": None}),
            r"about.groups.0 must be a finite number in 0 … 1; found nothing",
        ),
        (lambda c: c["about"].update(spread="wide"), r"about.spread must be one of .*; found \"wide\""),
        (lambda c: c["about"].update(lists={}), r"about.lists must be an object with 'median'; found \[\]"),
        (lambda c: c["about"].update(notions=["equalized_odds"]), r"about.notions must be those of asked.notions"),
        (lambda c: c.update(versions=[]), r"versions must be an object; found \[\]"),
        (lambda c: c["data"].update(fingerprint=3), r"data.fingerprint must be a text; found 3"),
    ],
)
@pytest.mark.parametrize("bound", [True, False])
def test_a_configuration_that_breaks_a_rule_is_named(run, change, says, bound):
    if not bound:
        unbind(run)
    config = json.loads((run / "config.json").read_bytes())
    change(config)
    (run / "config.json").write_text(json.dumps(config))
    for use in (er.Sweep.load, resume):
        with pytest.raises(DataError, match=rf"config.json: .*{says}") as caught:
            use(run)
        assert "\n" not in str(caught.value)


def deepen(config):
    value = 1
    for _ in range(30):
        value = [value]
    config["asked"]["settings"] = {"amortized": {"ridge": value}}


@pytest.mark.parametrize("content", [DEEP, b"", b"{", b"\xff\xfe", b'{"format": NaN}', b"1" * 5000])
def test_a_configuration_that_is_no_json_is_one_line(run, content):
    (run / "config.json").write_bytes(content)
    for use in (er.Sweep.load, resume):
        with pytest.raises(DataError, match=r"config.json: is not whole JSON. Make the run anew in another folder"):
            use(run)


@pytest.mark.parametrize("content", [b"[]", b"null", b"{}", b'{"format": true}', b'{"format": 3}', b'{"format": [2]}'])
def test_another_format_is_one_line(run, content):
    (run / "config.json").write_bytes(content)
    with pytest.raises(DataError, match=r"config.json: is not a configuration of format 1 or 2"):
        er.Sweep.load(run)


# ---------------------------------------------------------------------- the examples


def no_examples(path, foreign):
    path.unlink()


def cut_examples(path, foreign):
    path.write_bytes(path.read_bytes()[:-20])


def foreign_examples(path, foreign):
    shutil.copyfile(foreign / "examples.json", path)


def changed_title(path, foreign):
    path.write_bytes(path.read_bytes().replace(b'"title": "', b'"title": "x', 1))


def too_few_examples(path, foreign):
    content = json.loads(path.read_bytes())
    path.write_bytes(sealed(content["record"][:1], content["run"]))


def strange_item(path, foreign):
    content = json.loads(path.read_bytes())
    content["record"][0]["items"][0]["relevant"] = "yes"
    path.write_bytes(sealed(content["record"], content["run"]))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (no_examples, "is missing"),
        (cut_examples, "is damaged"),
        (foreign_examples, "belongs to another run"),
        (changed_title, "is damaged"),
        (too_few_examples, "its content must be 3 queries; found 1"),
        (strange_item, r"\[0\].items\[0\].relevant must be true or false; found \"yes\""),
    ],
)
def test_examples_that_are_lost_are_told_and_made_again(run, finished, foreign, trained, damage, says):
    whole = er.Sweep.load(finished)
    damage(run / "examples.json", foreign)
    with pytest.warns(DataWarning, match=rf"examples.json: .*{says}.*the run is shown without examples"):
        lost = er.Sweep.load(run)
    assert table(lost).equals(table(whole), null_equal=True)
    assert lost.examples is None
    assert "example" in lost.html()
    resume(run)
    assert trained == []
    assert (run / "examples.json").read_bytes() == (finished / "examples.json").read_bytes()
    assert er.Sweep.load(run).examples.queries == whole.examples.queries


# ---------------------------------------------------------------------- other files in their place


@pytest.mark.parametrize("name", ["config.json", "journal.jsonl", "examples.json"])
def test_a_folder_or_a_broken_link_in_place_of_a_file(run, name):
    (run / name).unlink()
    (run / name).mkdir()
    with pytest.raises((ConfigError, DataError)):
        resume(run)
    if name == "examples.json":
        with pytest.warns(DataWarning, match="without examples"):
            er.Sweep.load(run)
    else:
        with pytest.raises(DataError):
            er.Sweep.load(run)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files")
@pytest.mark.parametrize("name", ["config.json", "journal.jsonl"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(run, name):
    (run / name).unlink()
    os.mkfifo(run / name)
    for use in (er.Sweep.load, resume):
        with pytest.raises((ConfigError, DataError)):
            use(run)


# ---------------------------------------------------------------------- folders of format 1


def test_a_folder_without_ids_loads_and_goes_on(run, finished, trained):
    unbind(run)
    whole = er.Sweep.load(finished)
    old = er.Sweep.load(run)
    assert table(old).equals(table(whole), null_equal=True)
    assert old.examples.queries == whole.examples.queries
    write_lines(run, lines(run)[1:])
    assert table(resume(run)).equals(table(whole), null_equal=True)
    assert len(trained) == 1
    assert table(er.Sweep.load(run)).equals(table(whole), null_equal=True)
    assert json.loads((run / "config.json").read_bytes())["format"] == 1


def test_lines_without_an_id_do_not_pass_for_lines_of_a_run_that_has_one(run):
    write_lines(run, [sealed(json.loads(line)["record"], None) for line in lines(run)])
    with pytest.raises(DataError, match=r"journal.jsonl, line 1: belongs to another run"):
        er.Sweep.load(run)


# ---------------------------------------------------------------------- mending


def test_a_kill_while_the_journal_is_mended_loses_nothing(run, finished, monkeypatch):
    """The mended journal takes the old one's place in one step, after it is on disk."""
    kept = lines(run)
    write_lines(run, [b"damaged\n", *kept[1:]])
    before = (run / "journal.jsonl").read_bytes()

    class Killed(BaseException):
        pass

    def die(*_):
        raise Killed

    replace = os.replace
    monkeypatch.setattr("evenrank.experiment.journal.os.replace", die)
    with pytest.warns(DataWarning, match="damaged"), pytest.raises(Killed):
        resume(run)
    monkeypatch.setattr("evenrank.experiment.journal.os.replace", replace)
    assert (run / "journal.jsonl").read_bytes() == before
    (run / ".journal.jsonl-abc.part").write_text("left by a kill")
    with pytest.warns(DataWarning, match="damaged"):
        resume(run)
    assert table(er.Sweep.load(run)).equals(table(er.Sweep.load(finished)), null_equal=True)
    assert not list(run.glob(".*.part"))


def test_a_full_disk_while_mending_is_one_line(run, monkeypatch):
    write_lines(run, [b"damaged\n", *lines(run)[1:]])
    before = (run / "journal.jsonl").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evenrank.experiment.journal.os.fsync", full)
    with (
        pytest.warns(DataWarning, match="damaged"),
        pytest.raises(ConfigError, match=r"journal.jsonl: cannot be mended \(No space left on device\)"),
    ):
        resume(run)
    assert (run / "journal.jsonl").read_bytes() == before
    assert not list(run.glob(".*.part"))


def test_the_mended_journal_is_locked(run, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    write_lines(run, [b"damaged\n", *lines(run)[1:]])
    seen = []
    original = Runner.run

    def tried(self, block):
        with open(run / "journal.jsonl", "ab") as other, pytest.raises(OSError, match="unavailable"):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen.append(block)
        return original(self, block)

    monkeypatch.setattr(Runner, "run", tried)
    with pytest.warns(DataWarning, match="damaged"):
        resume(run)
    assert len(seen) == 1


def test_random_damage():
    assert run_folders.run(60, seed=12) == []


def test_a_journal_that_is_a_link_to_itself_is_no_run_to_go_on_with(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").mkdir()
    (folder / "journal.jsonl").symlink_to("journal.jsonl")
    with pytest.raises(ConfigError, match="exists and is not a run folder"):
        er.sweep(DATA, out=folder, **ASKED)
