"""The process as the shell sees it: closed streams, readers that leave, Ctrl-C, terminals that lie, pipes as input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import evenrank as er
from evenrank.cli import app, process, spool
from evenrank.errors import DataError

PROGRAM = [sys.executable, "-m", "evenrank"]
ROWS = "qid,item,relevance,group,score,x\n" + "".join(
    f"{q},{i},{(q + i) % 2},{'ab'[i % 2]},{i % 3},{i}\n" for q in range(9) for i in range(6)
)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams, signals and pipes are POSIX's")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text(ROWS)
    return tmp_path


def shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in which ``evenrank`` is the program; its stderr goes to the file ``err``."""
    program = " ".join(f"'{part}'" for part in PROGRAM)
    return subprocess.run(
        ["bash", "-c", f'evenrank() {{ {program} "$@"; }}\n{script}'],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
    )


def test_a_closed_stdout_is_an_error_in_one_line_and_files_are_written_all_the_same(folder):
    done = shell("evenrank audit rows.csv -o a.md >&-", folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr == "evenrank: stdout cannot be written (Bad file descriptor).\n"
    assert (folder / "a.md").read_text().startswith("# Audit of rows.csv")
    done = shell("evenrank audit rows.csv --json >&-", folder)
    assert done.returncode == 2
    assert done.stderr == "evenrank: stdout cannot be written (Bad file descriptor).\n"


def test_a_closed_stderr_keeps_stdout_clean_and_the_exit_code(folder):
    done = shell("evenrank audit nowhere.csv 2>&-", folder)
    assert (done.returncode, done.stdout) == (2, "")
    done = shell("evenrank audit rows.csv --threshold 5 --json 2>&- <&-", folder)  # it warns
    assert done.returncode == 0
    assert json.loads(done.stdout)["data"]["rows"] == 54


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout(folder):
    done = shell("evenrank rank rows.csv --score score > /dev/full", folder)
    assert done.returncode == 2
    assert done.stderr == "evenrank: stdout cannot be written (No space left on device).\n"


@pytest.mark.parametrize("command", ["--help", "--version", "audit rows.csv", "audit rows.csv -o /dev/stdout"])
def test_a_reader_that_has_gone_is_exit_code_141_without_a_word(folder, command):
    # The reader has gone before the program writes, also what is flushed only at the end.
    script = f"mkfifo pipe; exec 3<>pipe 4>pipe 3>&-; evenrank {command} >&4"
    done = shell(script, folder)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_verdict_outlives_the_reader(folder):
    script = "mkfifo pipe; exec 3<>pipe 4>pipe 3>&-; evenrank audit nowhere.csv >&4"
    assert shell(script, folder).returncode == 2


def test_interrupted_while_modules_load(folder):
    """A module that sends Ctrl-C in the middle of its import, and one that hides it behind another exception."""
    for number, content in enumerate(
        [
            "import os, signal; os.kill(os.getpid(), signal.SIGINT)",
            "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException: raise ImportError",
        ]
    ):
        fake = folder / str(number)
        fake.mkdir()
        (fake / "typer.py").write_text(content)
        paths = os.pathsep.join([str(fake), str(Path(er.__file__).parents[1])])
        done = subprocess.run(
            [*PROGRAM, "audit", "rows.csv"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "evenrank: interrupted\n")


def test_terminated_while_modules_load(folder):
    (folder / "typer.py").write_text("import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)")
    done = shell("evenrank audit rows.csv", folder, PYTHONPATH=f"{folder}{os.pathsep}{Path(er.__file__).parents[1]}")
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "evenrank: terminated\n")


@pytest.mark.parametrize("waits", ["", "except KeyboardInterrupt: pass"], ids=["reading", "training"])
def test_terminated_at_work_leaves_nothing_behind(folder, waits):
    """The copy of a pipe goes with the command, and trainers that keep their weights on Ctrl-C do not go on."""
    (folder / "tmp").mkdir()
    program = f"""
import os, signal, sys, time
import evenrank.cli.audit as module
def read(files, *_, **__):
    assert files[0].exists()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(9)
    {waits or "finally: pass"}
    print("went on")
module.common.read_labelled_rows = read
sys.argv = ["evenrank", "audit", "-", "--k", "3", "-o", "a.md"]
from evenrank.cli import main
main()
"""
    (folder / "program.py").write_text(program)
    done = shell(f"cat rows.csv | '{sys.executable}' program.py", folder, TMPDIR=str(folder / "tmp"))
    assert (done.returncode, done.stdout, done.stderr) == (143, "", "evenrank: terminated\n")
    assert not list((folder / "tmp").iterdir())
    assert not (folder / "a.md").exists()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_after_the_work_is_done_keeps_the_exit_code(folder, name):
    """Python gives signals their defaults back before it takes its modules apart, which may take a second."""
    program = f"""
import os, signal, sys
class Late:
    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.{name}):
        kill(me, number)
sys.late = Late()
sys.argv = ["evenrank", "audit", "rows.csv", "--k", "3", "-o", "a.md"]
from evenrank.cli import main
main()
"""
    (folder / "program.py").write_text(program)
    done = shell(f"'{sys.executable}' program.py", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "a.md").exists()


def test_an_exception_that_an_interrupt_caused_is_an_interrupt():
    caused = ImportError("numpy could not be imported")
    caused.__cause__ = KeyboardInterrupt()
    assert app._was_interrupted(caused)
    assert not app._was_interrupted(ImportError())


@pytest.mark.parametrize("columns", ["0", "1", "-5", "²", "x", "", "999999999", "9" * 30])
def test_widths_that_no_terminal_has(folder, monkeypatch, columns):
    for name in process.WIDTHS:
        monkeypatch.setenv(name, columns)
    process.tidy_terminal()
    assert not set(process.WIDTHS) & set(os.environ)
    monkeypatch.setenv("COLUMNS", "120")
    process.tidy_terminal()
    assert os.environ["COLUMNS"] == "120"


def test_a_width_of_zero_prints_the_usual_table(folder):
    usual = shell("evenrank train rows.csv --k 3 | grep -v Trained", folder, COLUMNS="80")
    none = shell("evenrank train rows.csv --k 3 | grep -v Trained", folder, COLUMNS="0", LINES="0", TERMINAL_WIDTH="?")
    assert none.stdout == usual.stdout != ""


@pytest.mark.parametrize(
    ("script", "title"),
    [
        ("cat rows.csv | evenrank audit - --k 3 --group group --group x", "standard input by group"),
        ("evenrank audit /dev/stdin --k 3 < rows.csv", "standard input"),
        ("evenrank audit <(cat rows.csv) --k 3", "a pipe"),
        ("mkfifo named.csv; cat rows.csv > named.csv & evenrank audit named.csv --k 3", "named.csv"),
        ("gzip -c rows.csv | evenrank audit - --k 3 --compare -", "standard input"),
    ],
)
def test_pipes_are_read_once_and_taken_for_files(folder, script, title):
    done = shell(script, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Audit of {title}\n")
    assert "54 rows, 9 queries" in done.stdout


def test_rows_to_rank_may_come_from_a_pipe(folder):
    ranked = shell("evenrank train rows.csv --json > /dev/null && evenrank rank rows.csv", folder)
    assert ranked.returncode == 0, ranked.stderr
    for script in ("cat rows.csv | evenrank rank -", "evenrank rank /dev/stdin < rows.csv"):
        assert shell(script, folder).stdout == ranked.stdout != ""


def test_pipes_of_every_format(folder):
    data = er.read(folder / "rows.csv", score="score")
    import polars as pl

    frame = pl.read_csv(folder / "rows.csv")
    frame.write_parquet(folder / "a.parquet")
    frame.write_ndjson(folder / "a.jsonl")
    frame.write_csv(folder / "a.tsv", separator="\t")
    for suffix in ("parquet", "jsonl", "tsv"):
        os.mkfifo(folder / suffix)
        writer = subprocess.Popen(["cp", f"a.{suffix}", suffix], cwd=folder)
        (folder / f"{suffix} copy").mkdir()
        copy = spool.spooled(folder / suffix, folder / f"{suffix} copy")
        assert writer.wait(60) == 0
        assert er.read(copy, score="score").n_rows == data.n_rows
    assert spool.as_named(f"{copy}: no") == f"{folder / suffix}: no"
    shell("cat rows.csv | evenrank audit - --k 3", folder)
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("evenrank-*/0/stdin*"))


def test_messages_name_the_pipe_and_not_its_copy(folder):
    done = shell("sed s/a,0/a,high/ rows.csv | evenrank audit -", folder)
    assert done.returncode == 2
    assert done.stderr.startswith("evenrank: -:2: score must be a finite number; got 'high'.")
    done = shell("echo words | evenrank audit -", folder)
    assert done.returncode == 2
    assert done.stderr.startswith("evenrank: -: the suffix must be one of .csv, ")
    assert done.stderr.count("\n") == 1


def test_an_empty_pipe_is_called_empty(folder):
    for script in ("true | evenrank audit -", "evenrank audit <(true)", "evenrank rank /dev/stdin < /dev/null"):
        done = shell(script, folder)
        assert done.returncode == 2
        assert "the pipe is empty" in done.stderr
        assert done.stderr.count("\n") == 1


def test_an_endless_pipe_ends(folder):
    done = shell("yes 1,2,3 | evenrank audit -", folder, EVENRANK_MAX_BYTES="3M")
    assert done.returncode == 2
    assert "-: the pipe holds at least 4 MB; at most 3 MB are allowed" in done.stderr
    assert "EVENRANK_MAX_BYTES" in done.stderr


def test_file_names_that_are_not_utf8(folder):
    name = os.fsdecode(b"r\xff.csv")
    os.rename(folder / "rows.csv", folder / name)
    for more in ([], ["-o", os.fsdecode(b"\xfe.md")], ["-o", "a.html"]):
        done = subprocess.run(
            [*PROGRAM, "audit", name, "--k", "3", *more], cwd=folder, capture_output=True, timeout=120
        )
        assert (done.returncode, done.stderr) == (0, b""), more
        done.stdout.decode()
    assert (folder / os.fsdecode(b"\xfe.md")).read_text(encoding="utf-8").startswith("# Audit of r\\\\udcff.csv")
    missing = subprocess.run([*PROGRAM, "audit", name + "x.csv"], cwd=folder, capture_output=True, timeout=120)
    assert missing.returncode == 2
    assert missing.stderr == b"evenrank: r\\udcff.csvx.csv: there is no such file. Check the path.\n"
    trained = subprocess.run([*PROGRAM, "train", name, "-o", name + ".json", "--json"], cwd=folder, capture_output=True)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["model"] == name + ".json"


@pytest.mark.skipif(sys.platform == "darwin", reason="names of files are UTF-8 there")
def test_parquet_files_whose_names_are_not_utf8(folder):
    """In memory they are read; what opens files by names in UTF-8 alone refuses them."""
    import polars as pl

    name, model = os.fsdecode(b"r\xff.parquet"), os.fsdecode(b"m\xff.json")
    pl.read_csv(folder / "rows.csv").write_parquet(folder / "rows.parquet")
    usual = shell("evenrank audit rows.parquet --k 3 | tail -n +2", folder).stdout
    (folder / "rows.parquet").rename(folder / name)

    def evenrank(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*PROGRAM, *arguments], cwd=folder, capture_output=True, timeout=120, check=False)

    done = evenrank("audit", name, "--k", "3")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().split("\n", 1)[1] == usual != ""
    assert evenrank("train", name, "-o", model).returncode == 0
    done = evenrank("rank", name, "-m", model, "--engine", "stream")
    assert (done.returncode, done.stdout) == (2, b"")
    rule = b"the name of a Parquet file that is read part by part must be UTF-8"
    assert done.stderr == b"evenrank: r\\udcff.parquet: %s. Rename it.\n" % rule


def test_panics_below_python_are_one_line(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    zone = pa.array([0, 1], pa.timestamp("us", "Nowhere/None"))
    pq.write_table(
        pa.table({"qid": zone, "relevance": [0, 1], "group": ["a", "b"], "score": [1, 2]}), folder / "a.parquet"
    )
    done = shell("evenrank audit a.parquet", folder)
    assert done.returncode == 2
    assert done.stderr.startswith("evenrank: a.parquet: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_no_room_for_the_copy_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(writer, ROWS.encode())
    (tmp_path / "copy").symlink_to("/dev/full")
    threading.Timer(0.5, os.close, [writer]).start()
    with pytest.raises(
        DataError, match=r"pipe: the pipe cannot be copied to .* \(No space left on device\)\. Make room"
    ):
        spool._copy(tmp_path / "pipe", tmp_path / "copy")
