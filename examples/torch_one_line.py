"""A torch training loop made fair by one line.

The loop below is an ordinary one: a network, a listwise loss, batches of whole queries. The line that begins with
``loss +=`` is the change; without it this is the ranker you already have. Run: python examples/torch_one_line.py
"""

import torch

import evenrank as er
import evenrank.torch as et


def train(data: er.RankingData, alpha: float) -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(data.n_features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    listnet = et.ListNetLoss()
    fairness = et.FairnessLoss("demographic_parity", target="topk", k=5)
    loader = et.RankingDataset(data, dtype=torch.float32).loader(batch_queries=20)
    for _ in range(30):
        for features, relevance, group, qid in loader:
            scores = model(features).squeeze(1)
            loss = listnet(scores, relevance, group, qid)
            loss += alpha * fairness(scores, relevance, group, qid)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def scaled(data: er.RankingData) -> er.RankingData:
    features = (data.features - data.features.mean(axis=0)) / (data.features.std(axis=0) + 1e-9)
    return er.RankingData.from_arrays(
        features, data.relevance, data.group, data.query_of_row, group_names=data.group_names
    )


if __name__ == "__main__":
    data = scaled(er.datasets.german_credit("age"))
    for alpha in (0.0, 1.0):
        model = train(data, alpha)
        scores = model(torch.tensor(data.features, dtype=torch.float32)).squeeze(1).detach().numpy()
        values = er.measure(scores, data, ["ndcg@5", "dp@5"])
        print(f"alpha={alpha:g}: NDCG@5 {values['ndcg@5']:.3f}, dp@5 {values['dp@5']:.3f}")
