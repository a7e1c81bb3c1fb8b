"""The MLflow example with real MLflow: logged, loaded as a pyfunc, and served over HTTP. `make test-mlflow` runs it."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import evenrank as er

mlflow = pytest.importorskip("mlflow", reason="for an environment of its own; run by make test-mlflow")
EXAMPLE = Path(__file__).parents[2] / "examples" / "mlflow_pyfunc.py"


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The example's module, the folder it wrote, the address of its model and its rows."""
    described = importlib.util.spec_from_file_location("mlflow_pyfunc", EXAMPLE)
    module = importlib.util.module_from_spec(described)
    sys.modules["mlflow_pyfunc"] = module
    described.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("mlflow")
    address, data = module.log(folder)
    return folder, address, data


def frame(data: er.RankingData, count: int):
    import pandas as pd

    return pd.DataFrame(data.features[:count], columns=list(data.feature_names))


def test_the_logged_model_gives_the_rankers_scores(logged):
    folder, address, data = logged
    expected = data.to_stored(er.load(folder / "model.json").predict(data))[:20]
    for model in (address, folder / "ranker"):
        found = mlflow.pyfunc.load_model(str(model)).predict(frame(data, 20))
        np.testing.assert_array_equal(found, expected)
    assert len(mlflow.search_runs(experiment_names=["fair"])) == 1


def test_the_model_is_served(logged):
    folder, _, data = logged
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "models", "serve", "-m", str(folder / "ranker")]
    command += ["--env-manager", "local", "--host", "127.0.0.1", "--port", str(port)]
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(command, env=os.environ | path, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/ping", timeout=5):
                    break
            except OSError:
                ended = server.poll() is not None or time.monotonic() > deadline
                assert not ended, (folder / "server.log").read_text()
                time.sleep(0.5)
        body = json.dumps({"dataframe_split": frame(data, 5).to_dict(orient="split")}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.loads(answer.read())["predictions"]
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
        log.close()
    expected = data.to_stored(er.load(folder / "model.json").predict(data))[:5]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
