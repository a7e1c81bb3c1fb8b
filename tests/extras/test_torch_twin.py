"""An independent implementation of training, with torch's autograd, that the paths must agree with."""

import numpy as np
import pytest

import evenrank as er

pytestmark = pytest.mark.extras
torch = pytest.importorskip("torch", reason="installed by make test-extras")

MASKS = {
    "demographic_parity": lambda r: [torch.ones_like(r, dtype=torch.bool)],
    "equal_opportunity": lambda r: [r >= 1],
    "equalized_odds": lambda r: [r < 1, r >= 1],
}


def gap(scores, relevance, group, notion):
    masks = MASKS[notion](relevance)
    differences = [scores[mask & (group == 0)].mean() - scores[mask & (group == 1)].mean() for mask in masks]
    return sum(difference.abs() for difference in differences) / len(differences)


@pytest.mark.parametrize("notion", MASKS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_gd_equals_a_torch_training_loop(notion, loss):
    data = er.datasets.german_credit("age", lists=20)
    X = torch.tensor(data.features)
    X = (X - X.mean(0)) / X.std(0, correction=0).clamp_min(1e-12)
    relevance, group = torch.tensor(data.relevance), torch.tensor(data.group)
    model = torch.nn.Linear(X.shape[1], 1, dtype=torch.float64)
    torch.nn.init.zeros_(model.weight)
    torch.nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.003)
    base = torch.nn.MSELoss() if loss == "squared" else torch.nn.BCEWithLogitsLoss()
    for _ in range(300):
        optimizer.zero_grad()
        scores = model(X)[:, 0]
        (base(scores, relevance) + 0.07 * gap(scores, relevance, group, notion)).backward()
        optimizer.step()
    path = er.fairness_path(data, notion, [0.07], "gd", loss=loss, max_iter=300)
    np.testing.assert_allclose(path.scores(data)[:, 0], model(X)[:, 0].detach().numpy(), atol=1e-10)


@pytest.mark.parametrize("notion", MASKS)
def test_gradient_of_a_contrast_equals_autograd(notion):
    data = er.datasets.german_credit("sex", lists=20)
    values = np.random.default_rng(0).normal(size=data.n_rows)
    tensor = torch.tensor(values, requires_grad=True)
    gap(tensor, torch.tensor(data.relevance), torch.tensor(data.group), notion).backward()
    from evenrank.notions import bind

    np.testing.assert_allclose(bind(notion, data).gradient(values), tensor.grad.numpy(), atol=1e-15)
