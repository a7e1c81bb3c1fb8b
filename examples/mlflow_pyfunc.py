"""A ranker of evenrank as an MLflow model: logged with its model file, loaded as a pyfunc, ready to be served.

Run: python examples/mlflow_pyfunc.py FOLDER, in an environment with mlflow; then
mlflow models serve -m FOLDER/ranker --env-manager local
"""

import sys
from pathlib import Path

import mlflow
import pandas as pd

import evenrank as er


class Ranker(mlflow.pyfunc.PythonModel):
    """Scores of the rows of one list; the list's order is theirs, highest first."""

    def load_context(self, context):
        self.ranker = er.load(context.artifacts["model"])

    def predict(self, context, model_input: pd.DataFrame, params=None):
        return self.ranker.predict(model_input)


def log(folder: Path) -> tuple[str, er.RankingData]:
    """Train a ranker, log it in a run of a local store, and keep a copy to serve; gives the model's address."""
    data = er.datasets.german_credit("age", lists=50)
    ranker = er.FairLinearRanker("dp", alpha=0.1).fit(data)
    ranker.save(folder / "model.json")
    example = pd.DataFrame(data.features[:2], columns=list(data.feature_names))
    described = {
        "python_model": Ranker(),
        "artifacts": {"model": str(folder / "model.json")},
        "signature": mlflow.models.infer_signature(example, ranker.predict(data)[:2]),
        "pip_requirements": ["evenrank"],
        "code_paths": [__file__],  # the server finds the class above in it
    }
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'runs.db'}")
    mlflow.set_experiment(experiment_id=mlflow.create_experiment("fair", (folder / "artifacts").as_uri()))
    with mlflow.start_run():
        mlflow.log_params({"notion": "dp", "alpha": 0.1})
        mlflow.log_metrics({"dp_at_5": er.measure(ranker.predict(data), data, "dp@5")["dp@5"]})
        address = mlflow.pyfunc.log_model(name="ranker", **described).model_uri
    mlflow.pyfunc.save_model(folder / "ranker", **described)
    return address, data


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    where.mkdir(parents=True, exist_ok=True)
    address, data = log(where)
    rows = pd.DataFrame(data.features[:5], columns=list(data.feature_names))
    print(mlflow.pyfunc.load_model(address).predict(rows))
