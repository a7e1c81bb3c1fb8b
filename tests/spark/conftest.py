"""Spark sessions for the tests: a local one, and one on a standalone cluster that is started on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.spark)


def session_on(master: str, **settings: str) -> Any:
    """Start a session; the one before it must have been stopped."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("evenrank tests")
    for name, value in (SETTINGS | settings).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session on two threads of this machine."""
    session = session_on("local[2]")
    yield session
    session.stop()


class Cluster:
    """A standalone master and its workers, each a process of this machine."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder = folder
        self.port = _free_port()
        self.master = f"spark://127.0.0.1:{self.port}"
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(self.home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        place = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self.processes = [self._start("master.Master", *place)]
        _wait_for(self.port)
        self.workers = [self.add_worker() for _ in range(workers)]

    def add_worker(self) -> subprocess.Popen[bytes]:
        place = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g"]
        worker = self._start("worker.Worker", *place, self.master)
        self.processes.append(worker)
        return worker

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self.home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]
        with (self.folder / f"{name}-{time.monotonic_ns()}.log").open("wb") as log:
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(port: int, seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nothing listens on port {port} after {seconds:g} s")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def cluster_spark(cluster: Cluster) -> Iterator[Any]:
    """A session on that cluster."""
    session = session_on(cluster.master, **{"spark.executor.memory": "900m"})
    yield session
    session.stop()
