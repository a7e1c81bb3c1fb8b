"""The cache of embeddings: whole, resumable after a stop at any moment, never mixed up."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from contextlib import nullcontext

import numpy as np
import pytest

from evenrank.errors import ConfigError, DataError, DataWarning
from evenrank.features.cache import Meta, fill_cache, is_finished, status

ROWS, WIDTH, BLOCK = 100, 5, 8


class Numbers:
    """Pairs whose texts are their row numbers."""

    def __len__(self):
        return ROWS

    def between(self, start, stop):
        return [f"{row // 7}" for row in range(start, stop)], [str(row) for row in range(start, stop)]


class Seeded:
    """A vector drawn from a generator seeded by the texts; stops before the call given."""

    fingerprint, width = "seeded", WIDTH

    def __init__(self, calls=None, pause=0.0):
        self.calls, self.pause, self.seen = calls, pause, []

    def encode(self, queries, passages):
        if len(self.seen) == self.calls:
            raise KeyboardInterrupt
        time.sleep(self.pause)
        self.seen.append(int(passages[0]))
        pairs = zip(queries, passages, strict=True)
        return np.array([np.random.default_rng([int(q), int(p)]).normal(size=WIDTH) for q, p in pairs])


META = Meta("seeded", "data", ROWS, WIDTH, BLOCK)
WHOLE = Seeded().encode(*Numbers().between(0, ROWS)).astype(np.float16)


def test_vectors_are_those_of_the_encoder(tmp_path):
    seen = []
    found = fill_cache(tmp_path / "new" / "cache", Numbers(), Seeded(), META, progress=seen.append)
    assert isinstance(found, np.memmap)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, WHOLE)
    assert seen == [start / ROWS for start in range(0, ROWS, BLOCK)] + [1.0]


@pytest.mark.parametrize("calls", [0, 1, 5, 12])
def test_a_stopped_run_goes_on_after_the_last_finished_block(tmp_path, calls):
    with pytest.raises(KeyboardInterrupt):
        fill_cache(tmp_path, Numbers(), Seeded(calls), META)
    assert not is_finished(tmp_path, META)
    assert status(tmp_path).done == calls * BLOCK
    encoder = Seeded()
    np.testing.assert_array_equal(fill_cache(tmp_path, Numbers(), encoder, META), WHOLE)
    assert encoder.seen == list(range(calls * BLOCK, ROWS, BLOCK))
    assert is_finished(tmp_path, META)
    again = Seeded(0)
    np.testing.assert_array_equal(fill_cache(tmp_path, Numbers(), again, META), WHOLE)


def torn_line(folder):
    with (folder / "progress.txt").open("ab") as file:
        file.write(b"3 00ab")


def line_without_its_block(folder):
    with (folder / "progress.txt").open("ab") as file:
        file.write(b"3 12345678 0.100\n")


def line_out_of_order(folder):
    with (folder / "progress.txt").open("ab") as file:
        file.write(b"5 12345678 0.100\n6 12345678 0.100\n")


def lost_vectors(folder):
    os.truncate(folder / "embeddings.f16", 17)


def lost_record(folder):
    (folder / "progress.txt").unlink()


def lost_all_but_the_names(folder):
    for name in ("meta.json", "progress.txt", "embeddings.f16"):
        os.truncate(folder / name, 0)


DAMAGES = [
    torn_line,
    line_without_its_block,
    line_out_of_order,
    lost_vectors,
    lost_record,
    lost_all_but_the_names,
]
TOLD = [line_without_its_block, line_out_of_order, lost_vectors]


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_a_crash_can_leave_is_repaired(tmp_path, damage):
    with pytest.raises(KeyboardInterrupt):
        fill_cache(tmp_path, Numbers(), Seeded(3), META)
    damage(tmp_path)
    assert not is_finished(tmp_path, META)
    encoder = Seeded()
    with pytest.warns(DataWarning, match="finished blocks are damaged") if damage in TOLD else nullcontext():
        np.testing.assert_array_equal(fill_cache(tmp_path, Numbers(), encoder, META), WHOLE)
    assert encoder.seen[0] == (3 * BLOCK if damage in DAMAGES[:3] else 0)
    assert (tmp_path / "progress.txt").read_bytes().count(b"\n") == -(-ROWS // BLOCK)


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_cache import META, Numbers, Seeded
from evenrank.features.cache import fill_cache
print("ready", flush=True)
fill_cache(Path(sys.argv[1]), Numbers(), Seeded(pause=0.01), META)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_kill_at_random_moments(tmp_path):
    """Each process gets a random fraction of the whole time before SIGKILL, until one gets through."""
    rng = random.Random(5)
    folder = tmp_path / "cache"
    command = [sys.executable, "-c", SCRIPT.format(tests=os.path.dirname(__file__)), str(folder)]
    done, killed = 0, 0
    for _ in range(60):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(rng.uniform(0.0, 0.08))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        process.stdout.close()
        if (folder / "meta.json").exists():
            now = status(folder)
            assert now.done >= done  # nothing finished is ever lost
            done = now.done
            if is_finished(folder, META):
                break
    assert is_finished(folder, META)
    assert killed >= 2
    np.testing.assert_array_equal(np.fromfile(folder / "embeddings.f16", np.float16).reshape(ROWS, WIDTH), WHOLE)
    leftovers = {path.name for path in folder.iterdir() if not path.name.endswith(".part")}
    assert leftovers == {"embeddings.f16", "lock", "meta.json", "progress.txt"}


def test_other_embeddings_are_never_overwritten(tmp_path):
    fill_cache(tmp_path, Numbers(), Seeded(), META)
    before = (tmp_path / "embeddings.f16").read_bytes()
    for other in (
        Meta("another", "data", ROWS, WIDTH, BLOCK),
        Meta("seeded", "other data", ROWS, WIDTH, BLOCK),
        Meta("seeded", "data", ROWS - 1, WIDTH, BLOCK),
        Meta("seeded", "data", ROWS, WIDTH, BLOCK + 1),
    ):
        assert not is_finished(tmp_path, other)
        with pytest.raises(ConfigError, match="holds other embeddings than these"):
            fill_cache(tmp_path, Numbers(), Seeded(), other)
    assert (tmp_path / "embeddings.f16").read_bytes() == before


# ---------------------------------------------------------------------- damaged


@pytest.fixture
def whole(tmp_path):
    folder = tmp_path / "whole"
    fill_cache(folder, Numbers(), Seeded(), META)
    return folder


def test_a_flipped_bit_anywhere_is_seen_and_only_its_block_is_computed_again(whole):
    vectors = (whole / "embeddings.f16").read_bytes()
    rng = random.Random(3)
    for block in (0, 5, 12):
        damaged = bytearray(vectors)
        place = rng.randrange(block * BLOCK * WIDTH * 2, min((block + 1) * BLOCK, ROWS) * WIDTH * 2)
        damaged[place] ^= 1 << rng.randrange(8)
        (whole / "embeddings.f16").write_bytes(damaged)
        assert not is_finished(whole, META)
        encoder = Seeded()
        with pytest.warns(DataWarning, match="whole: 1 of 13 finished blocks are damaged and computed again"):
            np.testing.assert_array_equal(fill_cache(whole, Numbers(), encoder, META), WHOLE)
        assert encoder.seen == [block * BLOCK]
        assert is_finished(whole, META)
        assert (whole / "embeddings.f16").read_bytes() == vectors


@pytest.mark.parametrize("change", [lambda size: size - 1, lambda size: size - 77, lambda size: size + 8, lambda _: 0])
def test_vectors_of_another_size_are_not_served(whole, change):
    os.truncate(whole / "embeddings.f16", change((whole / "embeddings.f16").stat().st_size))
    assert not is_finished(whole, META)
    damaged = change(1000) < 1000
    with pytest.warns(DataWarning, match="damaged and computed again") if damaged else nullcontext():
        np.testing.assert_array_equal(fill_cache(whole, Numbers(), Seeded(), META), WHOLE)
    assert is_finished(whole, META)


@pytest.mark.parametrize(
    "line", [b"\n", b"\xff 00 1\n", b"7 zzzzzzzz 0.1\n", b"9" * 5000 + b" 00000000 0.100\n", b"7\n"]
)
def test_a_damaged_line_of_the_record_costs_its_own_block_only(whole, line):
    lines = (whole / "progress.txt").read_bytes().splitlines(keepends=True)
    (whole / "progress.txt").write_bytes(b"".join([*lines[:7], line, *lines[8:]]))
    assert status(whole).done == ROWS - BLOCK
    encoder = Seeded()
    with pytest.warns(DataWarning, match="1 of 13 finished blocks are damaged"):
        np.testing.assert_array_equal(fill_cache(whole, Numbers(), encoder, META), WHOLE)
    assert encoder.seen == [7 * BLOCK]


def test_lines_in_another_order_or_twice_are_no_damage(whole):
    lines = (whole / "progress.txt").read_bytes().splitlines(keepends=True)
    (whole / "progress.txt").write_bytes(b"".join([*lines[::-1], lines[4]]))
    assert is_finished(whole, META)
    np.testing.assert_array_equal(fill_cache(whole, Numbers(), Seeded(0), META), WHOLE)


@pytest.mark.parametrize("names", [["embeddings.f16"], ["progress.txt"], ["embeddings.f16", "progress.txt"]])
def test_vectors_of_another_encoder_or_other_texts_are_not_served(whole, tmp_path, names):
    """Of the same size, with checksums that are right for what they are of."""

    class Other(Seeded):
        def encode(self, queries, passages):
            return super().encode(queries, passages) + 1

    fill_cache(tmp_path / "other", Numbers(), Other(), Meta("other", "data", ROWS, WIDTH, BLOCK))
    for name in names:
        shutil.copyfile(tmp_path / "other" / name, whole / name)
    assert not is_finished(whole, META)
    with pytest.warns(DataWarning, match="13 of 13 finished blocks are damaged"):
        np.testing.assert_array_equal(fill_cache(whole, Numbers(), Seeded(), META), WHOLE)
    shutil.copyfile(tmp_path / "other" / "meta.json", whole / "meta.json")
    assert not is_finished(whole, META)


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b'{"format": 0}', b"null", b"\xff", b'{"rows": "many"}'])
def test_a_damaged_description_is_written_again_if_the_blocks_prove_it(whole, content):
    before = (whole / "meta.json").read_bytes()
    (whole / "meta.json").write_bytes(content)
    assert not is_finished(whole, META)
    with pytest.raises(DataError, match="holds no embeddings"):
        status(whole)
    with pytest.raises(ConfigError, match=r"holds other embeddings than these, or its meta.json is damaged"):
        fill_cache(whole, Numbers(), Seeded(), Meta("another", "data", ROWS, WIDTH, BLOCK))
    with pytest.warns(DataWarning, match="meta.json: is damaged and written again"):
        np.testing.assert_array_equal(fill_cache(whole, Numbers(), Seeded(0), META), WHOLE)
    assert (whole / "meta.json").read_bytes() == before


@pytest.mark.parametrize("field", ["rows", "width", "block", "format"])
@pytest.mark.parametrize("value", [0, -1, 2**70, "8", None, True, 2.5, [8]])
def test_sizes_that_are_none_are_not_believed(whole, field, value):
    meta = json.loads((whole / "meta.json").read_bytes())
    (whole / "meta.json").write_text(json.dumps({**meta, field: value}))
    assert not is_finished(whole, META)
    with pytest.raises(DataError, match="holds no embeddings"):
        status(whole)


def test_a_cache_of_the_format_before_is_read_and_finished(whole):
    """Its checksums are those of the vectors alone."""
    meta = json.loads((whole / "meta.json").read_bytes())
    (whole / "meta.json").write_text(json.dumps({**meta, "format": 1}))
    parts = [WHOLE[start : start + BLOCK].tobytes() for start in range(0, ROWS, BLOCK)]
    lines = [f"{number} {zlib.crc32(part):08x} 0.100\n" for number, part in enumerate(parts)]
    (whole / "progress.txt").write_text("".join(lines))
    assert is_finished(whole, META)
    np.testing.assert_array_equal(fill_cache(whole, Numbers(), Seeded(0), META), WHOLE)
    (whole / "progress.txt").write_text("".join(lines[:9]))
    encoder = Seeded()
    np.testing.assert_array_equal(fill_cache(whole, Numbers(), encoder, META), WHOLE)
    assert encoder.seen == [block * BLOCK for block in range(9, 13)]
    assert is_finished(whole, META)
    assert json.loads((whole / "meta.json").read_bytes())["format"] == 1


def test_random_damage():
    from fuzz import caches  # here, because this module is also imported by a program that cannot see it

    assert caches.run(60, seed=12) == []


@pytest.mark.skipif(os.name == "nt", reason="there are no such locks")
def test_a_second_writer_is_refused(tmp_path):
    class Greedy(Seeded):
        def encode(self, queries, passages):
            with pytest.raises(ConfigError, match="another process is computing these embeddings"):
                fill_cache(tmp_path, Numbers(), Seeded(), META)
            return super().encode(queries, passages)

    np.testing.assert_array_equal(fill_cache(tmp_path, Numbers(), Greedy(), META), WHOLE)


class Fixed(Seeded):
    def __init__(self, values):
        self.values = values

    def encode(self, queries, passages):
        return self.values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((BLOCK, WIDTH + 1)), r"must give 5 numbers per pair for 8 pairs; got shape \(8, 6\)"),
        (np.full((BLOCK, WIDTH), np.nan), "row 0: the encoder must give finite numbers within ±65504; got nan"),
        (np.full((BLOCK, WIDTH), 7e4), "row 0: the encoder must give finite numbers within ±65504; got 70000.0"),
    ],
)
def test_vectors_that_cannot_be_kept_are_refused(tmp_path, values, message):
    with pytest.raises(DataError, match=message):
        fill_cache(tmp_path, Numbers(), Fixed(values), META)
    assert status(tmp_path).done == 0


def test_status_tells_the_speed(tmp_path):
    with pytest.raises(DataError, match="holds no embeddings"):
        status(tmp_path)
    (tmp_path / "meta.json").write_text(json.dumps(vars(META)))
    assert status(tmp_path).done == 0
    (tmp_path / "progress.txt").write_text("0 00000000 0.500\n1 00000000 1.500\n")
    found = status(tmp_path)
    assert (found.done, found.rows, found.rows_per_second) == (16, ROWS, 16 / 2.0)


def test_too_little_space_is_told_before_the_work(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", refuse, raising=False)
    encoder = Seeded()
    with pytest.raises(ConfigError, match=r"the embeddings need 0\.0 GB \(No space left on device\)"):
        fill_cache(tmp_path, Numbers(), encoder, META)
    assert encoder.seen == []
