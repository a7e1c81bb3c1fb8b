"""Files that cannot be opened, and files that are written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from evenrank.errors import ConfigError, DataError
from evenrank.io import files, read, write_whole


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
