"""Run folders: what survives being killed, what is refused, and what a folder gives back."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import evenrank as er
from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.experiment import journal
from evenrank.experiment.plan import Runner
from evenrank.experiment.run_folder import RunFolder
from killable import METHODS, OPTIONS, Forks

KILLS = 20
FILES = ["config.json", "examples.json", "journal.jsonl", "trials.csv", "trials.parquet"]
QUICK = {"notions": ["dp"], "strengths": [0, 0.1], "ks": [3], "folds": 3, "examples": 4}


@pytest.fixture(scope="module")
def data():
    return er.datasets.german_credit("age", lists=60, items=12)


@pytest.fixture(scope="module")
def forks():
    program = Forks()
    yield program
    program.close()


def assert_same_run(one: Path, other: Path) -> None:
    """Everything but timings, the moment and command of the beginning, and the id made from them."""
    tables = [pl.read_parquet(folder / "trials.parquet").drop("seconds") for folder in (one, other)]
    assert tables[0].equals(tables[1], null_equal=True)
    texts = [pl.read_csv(folder / "trials.csv").drop("seconds") for folder in (one, other)]
    assert texts[0].equals(texts[1], null_equal=True)
    configs = [json.loads((folder / "config.json").read_text()) for folder in (one, other)]
    for config in configs:
        del config["made"], config["id"]
    assert configs[0] == configs[1]
    examples = [json.loads((folder / "examples.json").read_text())["record"] for folder in (one, other)]
    assert examples[0] == examples[1]
    records = [{json.dumps(record.pop("block")): record for record in RunFolder(f).blocks()} for f in (one, other)]
    assert records[0].keys() == records[1].keys()
    for block, record in records[0].items():
        assert {**record, "seconds": 0} == {**records[1][block], "seconds": 0}
    assert sorted(path.name for path in one.iterdir()) == FILES


def blocks(folder: Path) -> int:
    return len(RunFolder(folder).blocks())


def children(process: int) -> list[int]:
    """The processes it started; none where the system does not tell."""
    told = Path(f"/proc/{process}/task/{process}/children")
    return [int(one) for one in told.read_text().split()] if told.exists() else []


def alive(process: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_for(condition) -> None:
    until = time.perf_counter() + 60
    while not condition():
        assert time.perf_counter() < until
        time.sleep(0.02)


# ---------------------------------------------------------------------- killed


def test_killed_at_random_moments_and_resumed_gives_the_same_results(forks, tmp_path):
    whole = tmp_path / "whole"
    assert forks.run(str(whole)) == 0
    began = time.perf_counter()
    assert forks.run(str(tmp_path / "again")) == 0  # warm, so it tells how long a run takes
    lasts = time.perf_counter() - began
    assert_same_run(tmp_path / "again", whole)
    total = len(METHODS) * OPTIONS["folds"]
    rng = np.random.default_rng(20)
    left: list[int] = []  # finished blocks at each kill
    runs = 0
    while len(left) < KILLS:
        folder = tmp_path / f"run {runs}"
        runs += 1
        code = None
        while code != 0:
            before = blocks(folder)
            process = forks.start(str(folder))
            if len(left) < KILLS:
                time.sleep(rng.uniform(0, lasts / 3))
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            code = forks.wait()
            assert code in (0, -signal.SIGKILL)
            if code != 0:
                left.append(blocks(folder))
                assert left[-1] >= before
        assert_same_run(folder, whole)
    assert len(left) == KILLS
    assert sum(number < total for number in left) >= 3  # or the machine was so uneven that the test says nothing
    assert sum(0 < number < total for number in left) >= KILLS * 0.3
    assert len({number for number in left if number < total}) >= 5  # at moments that differ


def test_killed_at_every_step_of_writing_and_resumed(forks, tmp_path):
    """The steps: the folder, examples.json and config.json made and moved, two blocks on disk, both tables."""
    options = {"methods": ["amortized"], "folds": 2, "examples": 3}
    whole = tmp_path / "whole"
    assert forks.run(str(whole), **options) == 0
    expected = [0] * 6 + [1, 2, 2, 2, 2]
    for step, kept in enumerate(expected):
        folder = tmp_path / f"dies at {step}"
        assert forks.run(str(folder), die_at=step, **options) == -signal.SIGKILL
        # Before its fsync a block is in the system's hands, which a kill does not take away.
        assert blocks(folder) == kept + (step in (5, 6))
        assert (folder / "trials.parquet").exists() is False
        assert forks.run(str(folder), **options) == 0
        assert_same_run(folder, whole)
    assert forks.run(str(tmp_path / "lives"), die_at=len(expected), **options) == 0


def test_killed_with_several_processes_and_resumed(forks, tmp_path):
    whole, folder = tmp_path / "whole", tmp_path / "run"
    assert forks.run(str(whole)) == 0
    process = forks.start(str(folder), n_jobs=2)
    wait_for(lambda: blocks(folder))
    workers = children(process)
    os.kill(process, signal.SIGKILL)
    assert forks.wait() == -signal.SIGKILL
    wait_for(lambda: not any(map(alive, workers)))  # none is left behind
    assert blocks(folder) < len(METHODS) * OPTIONS["folds"]
    assert forks.run(str(folder)) == 0
    assert_same_run(folder, whole)


# ---------------------------------------------------------------------- damaged


@pytest.fixture
def run(data, tmp_path):
    """A finished run."""
    er.sweep(data, out=tmp_path / "run", **QUICK)
    return tmp_path / "run"


@pytest.fixture
def trained(monkeypatch):
    """The blocks that are run while the test goes on."""
    seen = []
    original = Runner.run

    def run(self, block):
        seen.append(block.fold)
        return original(self, block)

    monkeypatch.setattr(Runner, "run", run)
    return seen


def without_seconds(result):
    return result.frame().drop("seconds")


def about(result):
    return {name: value for name, value in result.about.to_dict().items() if name not in ("seconds", "made")}


def test_a_finished_run_returns_at_once(data, run, trained):
    again = er.sweep(data, out=run, **QUICK)
    assert trained == []
    assert again.frame().equals(er.Sweep.load(run).frame(), null_equal=True)
    assert again.about == er.Sweep.load(run).about
    assert again.about.made.began == json.loads((run / "config.json").read_text())["made"]["began"]


@pytest.mark.parametrize("cut", [1, 2, 40, 200])
def test_a_line_cut_short_is_run_again(data, run, trained, cut):
    whole = without_seconds(er.Sweep.load(run))
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    with pytest.warns(DataWarning, match="the run is not finished, 2 of 3 blocks are done"):
        assert len(er.Sweep.load(run)) == 2 * 2
    resumed = er.sweep(data, out=run, **QUICK)
    assert trained == [2]
    assert without_seconds(resumed).equals(whole)
    assert without_seconds(er.Sweep.load(run)).equals(whole)


@pytest.mark.parametrize("damage", ["digit", "not JSON", "empty line"])
def test_only_the_block_of_a_damaged_line_is_run_again(data, run, trained, damage):
    whole = without_seconds(er.Sweep.load(run))
    journal = run / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    place = lines[1].index(b"0.")
    changed = lines[1][: place + 2] + b"1" + lines[1][place + 3 :]
    assert changed != lines[1]
    lines[1] = {"digit": changed, "not JSON": b"\x00\xff}\n", "empty line": b"\n"}[damage]
    journal.write_bytes(b"".join(lines))
    with pytest.warns(DataWarning, match=r"journal.jsonl, line 2: damaged and left out"):
        resumed = er.sweep(data, out=run, **QUICK)
    assert trained == [1]
    assert without_seconds(resumed).equals(whole)
    mended = journal.read_bytes().splitlines(keepends=True)
    assert [mended[0], mended[1]] == [lines[0], lines[2]]
    assert len(mended) == 3
    assert sorted(path.name for path in run.iterdir()) == FILES
    assert without_seconds(er.Sweep.load(run)).equals(whole)  # without a warning


def test_a_damaged_configuration_is_one_line(data, run):
    (run / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"config.json: is not whole JSON"):
        er.Sweep.load(run)
    (run / "config.json").write_text('{"format": 99}')
    for use in (er.Sweep.load, lambda folder: er.sweep(data, out=folder, **QUICK)):
        with pytest.raises(DataError, match=r"config.json: is not a configuration of format 1 or 2"):
            use(run)


# ---------------------------------------------------------------------- refused


def test_a_folder_that_is_no_run(data, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for path in (mine, mine / "notes.txt"):
        with pytest.raises(ConfigError, match=r"exists and is not a run folder. Name a new or an empty folder"):
            er.sweep(data, out=path, **QUICK)
    (mine / "notes.txt").rename(mine / "journal.jsonl")
    with pytest.raises(ConfigError, match="is not a run folder"):
        er.sweep(data, out=mine, **QUICK)
    assert [(path.name, path.read_text()) for path in mine.iterdir()] == [("journal.jsonl", "mine")]
    for path in (mine, tmp_path / "nowhere"):
        with pytest.raises(DataError, match=r"is not a run folder \(it has no config.json\)"):
            er.Sweep.load(path)
    with pytest.raises(ConfigError, match="cannot be made"):
        er.sweep(data, out=mine / "journal.jsonl" / "run", **QUICK)


def test_an_empty_folder_is_taken_and_missing_ones_are_made(data, tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "a" / "b"):
        er.sweep(data, out=path, **QUICK)
        assert len(er.Sweep.load(path)) == 6


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"strengths": [0, 0.2]}, r'strengths \(asked\) differ: {"amortized": \[0.0, 0.1\]} there, .*0.2\]} now'),
        ({"ks": [3, 5]}, r"ks \(asked\) differ: \[3\] there, \[3, 5\] now"),
        ({"notions": ["eop"]}, r'notions \(asked\) differ: \["demographic_parity"\] there, \["equal_opp.*"\] now'),
        ({"methods": ["per_query"]}, r'methods \(asked\) differ: \["amortized"\] there, \["per_query"\] now'),
        ({"folds": 4}, r'blocks \(asked\) differ: nothing there, {"method": "amortized", "fold": 3, "seed": 0} now'),
        ({"seed": 5}, r'blocks \(asked\) differ: .*"seed": 0} there, .*"seed": 5} now'),
        ({"solver": "gd"}, r'solver \(asked\) differ: "exact" there, "gd" now'),
        ({"scale": None}, r'scale \(asked\) differ: "train" there, nothing now'),
        ({"settings": {"amortized": {"ridge": 0.5}}}, r"settings \(asked\) differ: {} there, .*0.5}} now"),
        ({"examples": 2}, r"examples \(asked\) differ: 4 there, 2 now"),
    ],
)
def test_another_configuration_is_refused_by_name(data, run, other, says):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with pytest.raises(ConfigError, match=says + r"\. Name another folder, or remove this one"):
        er.sweep(data, out=run, **{**QUICK, **other})
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def rebuilt(data, **changed):
    parts = {
        "X": data.features,
        "relevance": data.relevance,
        "group": data.group,
        "qid": data.query_ids[data.query_of_row],
        "item_ids": data.item_ids,
        "feature_names": data.feature_names,
        "group_names": data.group_names,
    }
    return er.RankingData.from_arrays(**{**parts, **changed})


def test_other_data_is_refused(data, run):
    assert len(er.sweep(rebuilt(data), out=run, **QUICK)) == 6  # equal data is the same data
    features, group = data.features.copy(), data.group.copy()
    features[17, 3] += 1e-9
    group[5] = 1 - group[5]
    for other in (
        rebuilt(data, X=features),
        rebuilt(data, group=group),
        rebuilt(data, relevance=1 - data.relevance),
        rebuilt(data, item_ids=data.item_ids[::-1]),
        rebuilt(data, feature_names=[f"f{j}" for j in range(data.n_features)]),
        rebuilt(data, relevance_threshold=0.5),
    ):
        with pytest.raises(ConfigError, match=r"fingerprint \(data\) differ"):
            er.sweep(other, out=run, **QUICK)
    with pytest.raises(ConfigError, match=r"rows \(data\) differ: 720 there, 600 now"):
        er.sweep(data.take(np.arange(50)), out=run, **QUICK)


def test_other_versions_may_read_a_run_but_not_go_on_with_it(data, run, monkeypatch, trained):
    monkeypatch.setattr("evenrank.experiment.about.version", lambda package: "99.0")
    assert len(er.sweep(data, out=run, **QUICK)) == 6
    journal = run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-1])
    with pytest.raises(ConfigError, match=r'evenrank \(versions\) differ: "[0-9.]+" there, "99.0" now'):
        er.sweep(data, out=run, **QUICK)
    assert trained == []


def test_two_processes_at_once(data, run, trained):
    journal = run / "journal.jsonl"
    with open(journal, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ConfigError, match=r"another process is writing to this run. Wait for it, or name another"):
            er.sweep(data, out=run, **QUICK)
        assert len(er.Sweep.load(run)) == 6  # reading is allowed
    er.sweep(data, out=run, **QUICK)
    assert trained == []


def test_a_second_process_cannot_begin_what_another_has_begun(data, forks, tmp_path):
    folder = tmp_path / "run"
    forks.start(str(folder))
    wait_for((folder / "config.json").exists)
    with pytest.raises(ConfigError, match="another process is writing to this run"):
        er.sweep(data, out=folder, **QUICK)
    assert forks.wait() == 0


@pytest.mark.parametrize("existing", [True, False])
def test_a_run_that_fails_before_its_first_block_leaves_nothing(data, tmp_path, existing):
    folder = tmp_path / "run"
    if existing:
        folder.mkdir()
    with pytest.raises(ConfigError, match="loss must be one of"):
        er.sweep(data, out=folder, settings={"amortized": {"loss": "magic"}}, **QUICK)
    assert folder.exists() is existing
    with pytest.raises(ConfigError, match="a run folder holds numbers, texts and lists of them"):
        er.sweep(data, out=folder, settings={"amortized": {"loss": object()}}, **QUICK)
    assert folder.exists() is existing
    assert len(er.sweep(data, out=folder, settings={"amortized": {"ridge": np.float32(0.5)}}, **QUICK)) == 6


def test_a_run_that_fails_later_keeps_its_blocks(data, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    original = Runner.run

    def fails(self, block):
        if block.fold == 1:
            raise RuntimeError("the machine is on fire")
        return original(self, block)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", fails)
        with pytest.raises(RuntimeError, match="on fire"):
            er.sweep(data, out=folder, **QUICK)
    assert blocks(folder) == 1
    seen = []
    assert len(er.sweep(data, out=folder, progress=seen.append, **QUICK)) == 6
    assert seen == pytest.approx([1 / 3, 2 / 3, 1])


def test_a_run_without_a_finished_block_cannot_be_loaded(run):
    (run / "journal.jsonl").write_bytes(b"")
    with pytest.raises(DataError, match=r"the run has no finished block yet. Go on with the command that began it"):
        er.Sweep.load(run)


# ---------------------------------------------------------------------- what comes back


def test_on_disk_in_memory_and_in_parallel_are_the_same(data, tmp_path):
    options = {**OPTIONS, "folds": 3}
    in_memory = er.sweep(data, **options)
    on_disk = er.sweep(data, out=tmp_path / "disk", **options)
    parallel = er.sweep(data, out=tmp_path / "parallel", n_jobs=2, **options)
    loaded = er.Sweep.load(tmp_path / "parallel")
    assert len(in_memory) == 3 * (2 * 2 * 3 + 2 * 3)
    for other in (on_disk, parallel, loaded):
        assert without_seconds(other).equals(without_seconds(in_memory), null_equal=True)
        assert other.ks == in_memory.ks
        assert about(other) == about(in_memory)
        assert other.examples.queries == in_memory.examples.queries
        assert other.examples.tops.keys() == in_memory.examples.tops.keys()
        for key, top in other.examples.tops.items():
            np.testing.assert_array_equal(top, in_memory.examples.tops[key])
        assert json.dumps(other.to_dict()["curves"]) == json.dumps(in_memory.to_dict()["curves"])


def test_values_that_are_not_defined_survive(tmp_path):
    """The queries of fold 0 have one group only, so their violation is NaN, which JSON does not have."""
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(6), 5)
    fold = np.arange(6) % 3
    group = np.where(fold[qid] == 0, 0, rng.integers(0, 2, len(qid)))
    rows = er.RankingData.from_arrays(rng.normal(size=(30, 2)), rng.integers(0, 2, 30), group, qid)
    options = {"notions": ["dp"], "strengths": [0.1], "ks": [2], "folds": fold}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        in_memory = er.sweep(rows, **options)
        on_disk = er.sweep(rows, out=tmp_path / "run", **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        again = er.sweep(rows, out=tmp_path / "run", **options)
    said = {str(one.message) for one in caught}
    assert "demographic_parity: all rows have no item of group 1; the violation is NaN" in said
    loaded = er.Sweep.load(tmp_path / "run")
    gaps = in_memory.columns["demographic_parity@2"]
    assert np.isnan(gaps).tolist() == [True, True, False, False, False, False]
    for other in (on_disk, again, loaded):
        np.testing.assert_array_equal(other.columns["demographic_parity@2"], gaps)
        assert without_seconds(other).equals(without_seconds(in_memory), null_equal=True)
    for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)


def test_titles_may_change_without_training_anew(data, run, trained):
    from evenrank.experiment.examples import Titles

    key = er.Sweep.load(run).examples.queries[0]["id"]
    number = next(value for value in data.query_ids.tolist() if str(value) == key)
    result = er.sweep(data, out=run, titles=Titles({number: "The first"}, {}), **QUICK)
    assert trained == []
    for one in (result, er.Sweep.load(run)):
        assert one.examples.queries[0]["title"] == "The first"


def test_the_configuration_says_what_was_done(run):
    config = json.loads((run / "config.json").read_text())
    assert config["data"]["rows"] == 720
    assert {"python", "evenrank", "numpy", "scipy", "scikit-learn"} <= config["versions"].keys()
    assert config["asked"]["strengths"] == {"amortized": [0, 0.1]}
    assert len(config["asked"]["blocks"]) == 3
    assert config["made"]["command"]


def test_a_disk_that_fills_up_is_one_line_and_the_run_goes_on(data, tmp_path, monkeypatch):
    """Of the third line only a part finds room; neither it nor closing the file may hide what happened."""
    real, lines = journal._to_disk, []

    def fills_up(file, content):
        lines.append(content)
        if len(lines) == 3:
            file.write(content[:20])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file, content)

    options = {"notions": ["dp"], "strengths": [0.1], "ks": [3], "folds": 4, "out": tmp_path / "run"}
    monkeypatch.setattr(journal, "_to_disk", fills_up)
    with pytest.raises(
        ConfigError, match=r"journal\.jsonl: cannot be written \(No space left on device\)\. Make room, "
    ) as caught:
        er.sweep(data, **options)
    assert "\n" not in str(caught.value)
    monkeypatch.setattr(journal, "_to_disk", real)
    assert len(RunFolder(tmp_path / "run").blocks()) == 2
    again = er.sweep(data, **options)
    assert len(again) == len(er.sweep(data, **{**options, "out": None}))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_journal_keeps_nothing_in_a_buffer():
    """What is left in one would fail again when the file is closed, as an error without a name."""
    with open("/dev/full", "ab", buffering=0) as full:
        book = journal.Journal(Path("run/journal.jsonl"), full, "0" * 32, [], str)
        with pytest.raises(ConfigError, match=r"^run/journal\.jsonl: cannot be written \(No space left on device\)"):
            book.append({})
