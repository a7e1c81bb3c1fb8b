"""Files that cannot be opened, and files that are written whole or not at all."""

from __future__ import annotations

import gzip
import os
import stat

import pytest

from evenrank.errors import ConfigError, DataError
from evenrank.io import files, limits, read, write_whole


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "letor", "run"])
def test_paths_that_cannot_be_read(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    with pytest.raises(DataError, match=rf"rows\.{suffix}: there is no such file\. Check the path\."):
        read(path)
    with pytest.raises(DataError, match=rf"rows\.{suffix}: there is no such file\. Check the path\."):
        read([path, path])
    path.mkdir()
    with pytest.raises(DataError, match=rf"rows\.{suffix}: is a folder; a file is needed\."):
        read(str(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_forbidden_paths(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("qid\n")
    path.chmod(0)
    with pytest.raises(DataError, match=r"rows\.csv: may not be read \(permission denied\)\."):
        read(path)
    path.chmod(0o444)
    with pytest.raises(ConfigError, match=r"rows\.csv: cannot be written \(permission denied\)\."):
        write_whole(path, "new")
    tmp_path.chmod(0o555)
    with pytest.raises(ConfigError, match=r"new\.csv: cannot be written \(Permission denied\)\."):
        write_whole(tmp_path / "new.csv", "new")
    tmp_path.chmod(0o755)


def test_text_bytes_and_permissions(tmp_path):
    path = tmp_path / "out.json"
    write_whole(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    plain = tmp_path / "plain"
    plain.write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o600)
    write_whole(str(path), b"\x00")
    assert path.read_bytes() == b"\x00"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["out.json", "plain"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", fail)
    with pytest.raises(ConfigError, match=r"out\.json: cannot be written \(No space left on device\)\."):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.json"]


def test_links_and_devices(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    write_whole("/dev/null", "gone")
    assert not os.path.isfile("/dev/null")


def test_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(ConfigError, match=r"is a folder; the output must be a file\. Add a file name\."):
        write_whole(tmp_path, "x")
    with pytest.raises(ConfigError, match=r"the folder '.*nowhere' does not exist\. Create it first\."):
        write_whole(tmp_path / "nowhere" / "out.json", "x")


# ---------------------------------------------------------------------- files that unpack to too much


def test_a_gzip_bomb_is_refused_without_being_unpacked(tmp_path, monkeypatch):
    row = b"1,1,a,2\n"
    packed = gzip.compress(b"qid,relevance,group,x\n" + row * 300_000, 9)
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(packed)
    monkeypatch.setattr(limits, "UNPACKED_ANYWAY", 1 << 20)
    with pytest.raises(
        DataError, match=r"rows\.csv\.gz: [\d,]+ bytes of gzip unpack to more than 1 MB; .*EVENRANK_MAX_B"
    ):
        read(path)
    monkeypatch.setattr(gzip, "decompress", None)  # not even tried
    with pytest.raises(DataError, match="unpack to more than"):
        read(path)
    monkeypatch.undo()
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "2M")
    with pytest.raises(DataError, match="unpack to more than 2 MB"):
        read(path)
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "1G")
    assert read(path).n_rows == 300_000


def test_ordinary_gzip_is_far_from_the_limit():
    assert limits.unpacked_limit(10_000) == min(1 << 28, limits.byte_limit())
    assert limits.byte_limit() > 1 << 20


@pytest.mark.parametrize("written", ["much", "-1", "0", "1.5G", "G", "9" * 20, "1 G"])
def test_a_limit_that_is_no_number(monkeypatch, written):
    monkeypatch.setenv("EVENRANK_MAX_BYTES", written)
    with pytest.raises(ConfigError, match="EVENRANK_MAX_BYTES must be a number of bytes ≥ 1, as 500M or 64G; got"):
        limits.byte_limit()


@pytest.mark.parametrize(
    ("written", "size"), [("7", 7), ("2k", 2048), ("3M", 3 << 20), ("1 ", 1), ("64GB", 1 << 36), ("1t", 1 << 40)]
)
def test_ways_to_write_a_limit(monkeypatch, written, size):
    monkeypatch.setenv("EVENRANK_MAX_BYTES", written)
    assert limits.byte_limit() == size
    monkeypatch.setenv("EVENRANK_MAX_BYTES", "")
    assert limits.byte_limit() > 1 << 20


@pytest.mark.parametrize(
    ("beginning", "what"),
    [(b"\x28\xb5\x2f\xfd", "a zstd archive"), (b"\xfd7zXZ\0", "an xz archive"), (b"BZh9", "a bzip2 ar")],
)
def test_other_archives_are_named(tmp_path, beginning, what):
    (tmp_path / "rows.csv").write_bytes(beginning + bytes(50))
    with pytest.raises(DataError, match=rf"rows\.csv: is {what}"):
        read(tmp_path / "rows.csv")


def test_text_with_halves_of_pairs_is_written_all_the_same(tmp_path):
    write_whole(tmp_path / "a.md", "r\udcff")
    assert (tmp_path / "a.md").read_bytes() == b"r\\udcff"
