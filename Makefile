# stepvalue: set-up, tests, benches. `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

PYTHON  ?= python3
VENV    ?= .venv
LIMIT   ?= 24
SEEDS   ?= 100000
KILLS   ?= 1000
EACH    ?= 30
CHAINS  ?= short
LOOP_DIR ?= runs/loop-$(CHAINS)
RUN_DIR ?= runs/demo-$(LIMIT)

BIN    := $(VENV)/bin
GPU_PYTHON ?= $(BIN)/python
UV     := $(BIN)/uv
# As the lock pins it, by hash.
INSTALL_UV = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r <(awk '/^[a-z]/ {uv = /^uv==/} uv' $(LOCK))
LOCK   := requirements.lock
# What GPU machines and the GPU image install, for both Pythons below; its vLLM is the image's, and the one of LOCK.
GPU_LOCK := requirements-gpu.lock
GPU_PYTHONS := 3.11 3.12
# Trainers that exports are read back with.
CONSUMERS := tests/export/consumers.lock
# `make lint` runs tests/lint. `make check` runs all other tests but those marked, so a new test is in it.
TWO    := -n 2 --dist loadfile --no-loadscope-reorder
NO_LINT := --ignore=tests/lint
QUICK  := not nightly and not ray and not model and not slow
STAMP  := $(VENV)/.stepvalue-ready

# The CPU build of torch lies on PyTorch's own index, not on PyPI. Where pip's find-links name a folder that holds it already,
# that folder is used and the index is not needed. (Shell, for use inside recipes: uv does not read pip's settings.)
TORCH = $$(for folder in $$($(BIN)/python -m pip config get global.find-links 2>/dev/null) $$PIP_FIND_LINKS; do \
	    ls "$$folder"/torch-*+cpu-*.whl >/dev/null 2>&1 && echo "--find-links=$$folder" && exit; \
	  done; echo --torch-backend=cpu)

# Without the machine's own index settings and folders of wheels, so that the lock names what everybody gets.
GPU_COMPILE = env -u UV_INDEX -u UV_FIND_LINKS $(UV) pip compile pyproject.toml --extra gpu --extra s3 --extra gcs --group image --quiet --no-header --no-annotate

# The CPU build of torch, with the hashes that PyTorch's index gives its wheels for Linux on x86-64 and Python 3.11 to 3.14.
# `make lock` copies this into LOCK, because a folder of wheels knows the hashes of its own files only.
define TORCH_PIN
torch==2.13.0+cpu \
    --hash=sha256:3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6 \
    --hash=sha256:4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2 \
    --hash=sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b \
    --hash=sha256:d20fa53ee744502fa4c69818a720b05ca0d37abd055d4f6e66cae155114bc691
endef
export TORCH_PIN

.DEFAULT_GOAL := help
.PHONY: help setup demo loop bench-loop check test nightly sown-bugs simulate kills process-kills tiny-policy tiny-truth lint lint-types lint-rest format bench bench-all bench-gpu bench-estimators contract lock wheel clean

help:  ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## environment in .venv: locked packages, the project, the default model

$(STAMP): $(LOCK) $(CONSUMERS) pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(UV) || $(INSTALL_UV)
	$(UV) pip sync --quiet --python $(BIN)/python --require-hashes $(TORCH) $(LOCK)
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r $(CONSUMERS)
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --editable .
	# Writes the bytecode of what a first start loads, which some machines are told not to keep: it halves every later start.
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pipeline.engines.embedded
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c "import ray, polars, math_verify, vllm.v1.engine.async_llm, vllm.v1.worker.cpu_worker" 2>/dev/null
	touch $@

demo: setup  ## label part of the sample with the default model and show the chains (LIMIT=82 for all of it)
	$(BIN)/python -m pipeline label data=sample data.limit=$(LIMIT) run_dir=$(RUN_DIR) run.show_chains=$(LIMIT)

loop: setup  ## sample, label, train, score and select with a tiny model, against known truth, then again with its PRM as a witness: minutes (CHAINS=short or long; goes on in LOOP_DIR)
	$(BIN)/python -u -m tests.bench.loop $(LOOP_DIR) $(CHAINS)

check: setup  ## before a commit: the quick tests of every package, at most a minute
	$(BIN)/python -m pytest -m '$(QUICK)' $(TWO) $(NO_LINT)

test: setup  ## what a change must pass: everything but what `make nightly` runs, in two processes, at most ten minutes
	$(BIN)/python -m pytest $(TWO) $(NO_LINT)

nightly: setup  ## what `make test` leaves out (kills, sown bugs, whole matrices, real models), and property tests with 300 new examples
	$(BIN)/python -m pytest -m 'nightly or hypothesis' $(TWO) --hypothesis-profile=nightly

sown-bugs: setup  ## sow each bug of tests/sown_bugs into a copy, and name the test that sees it (NAMES="threshold_at_least ..." for some): ten minutes
	$(BIN)/python -u -m tests.sown_bugs $(NAMES)

simulate: setup  ## many random schedules of faults (SEEDS=100000)
	$(BIN)/python -m tests.faults $(SEEDS)

kills: setup  ## kill processes at random times, start again, and count what was lost, doubled or changed (KILLS=1000)
	$(BIN)/python -m tests.faults.kills $(KILLS)

process-kills: setup  ## kill each kind of process of real runs, at a number of commits, and count the same (EACH=30, some minutes a kind)
	$(BIN)/python -m tests.faults.process_kills $(EACH)

tiny-policy: setup  ## train a tiny model of the statistical tests again (CHAINS=short, or long: half an hour); then measure its truth again
	$(BIN)/python -m tests.bench.tiny.train $(CHAINS)

tiny-truth: setup  ## measure the values of a tiny model's prefixes with 2,000 rollouts each (CHAINS=short, or long: half an hour)
	$(BIN)/python -m tests.bench.tiny.truth $(CHAINS)

lint: setup  ## ruff, mypy --strict, import rules, names and words, documents, pages of settings, pins, the budget of size
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint-types lint-rest

lint-types: setup
	$(BIN)/mypy

lint-rest: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.lint.names
	$(BIN)/python -m tests.lint.words
	$(BIN)/python -m tests.lint.size
	$(BIN)/python -m pytest -n0 tests/lint

format: setup  ## let ruff format the code
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

bench: setup  ## throughput: control plane, engine share, a straightforward script beside it; 15 minutes (RECORD=1 keeps it in RESULTS.md)
	$(BIN)/python -u -m tests.bench $(if $(RECORD),--record)

bench-all: setup  ## the other figures of tests/bench/README.md too, but the estimators' and those of hours: an hour
	$(BIN)/python -u -m tests.bench $(if $(RECORD),--record) all

# Not after `setup`, which would put vLLM's CPU build into the environment.
bench-gpu:  ## the first half hour on one NVIDIA GPU, unattended (MODEL=qwen2.5-7b GPU_PYTHON=... OUT=runs/bench-gpu; MODEL=small on a CPU; RECORD=1)
	$(GPU_PYTHON) -u -m tests.bench.gpu $(MODEL) $(if $(OUT),--out $(OUT)) $(if $(RECORD),--record)

bench-estimators: setup  ## tokens per labelled step against the error of values, ours and published rules, with known truth: minutes
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.bench.estimators

bench-loop: setup  ## the closed loop as an experiment: five seeds, ceilings, labels at equal tokens; an hour and a half (goes on in runs/loop-experiment)
	OMP_NUM_THREADS=1 $(BIN)/python -u -m tests.bench $(if $(RECORD),--record) loop

contract: setup  ## fetch the Python of GPU wheels of vLLM, and say what we use of it that they do not have (VLLM="0.33.0 0.34.0")
	$(BIN)/python -m tests.contract $(VLLM)

lock:  ## choose package versions again and pin them by hash
	test -x $(UV) || ($(PYTHON) -m venv $(VENV) && $(INSTALL_UV))
	echo "$$TORCH_PIN" | sed 's/ .*//;/^$$/d' | $(UV) pip compile pyproject.toml --extra cpu --extra dev --constraint - --python-platform x86_64-manylinux_2_28 \
	    --python-version 3.11 --generate-hashes --upgrade --quiet $(TORCH) --no-annotate --no-header \
	  | awk '/^[a-z]/ {torch = /^torch==/; if (torch) {pin = ENVIRON["TORCH_PIN"]; gsub(/ --hash/, " \\\n    --hash", pin); print pin}} !torch' > $(LOCK).new
	mv $(LOCK).new $(LOCK)
	# First one version of each package that suits both Pythons, then their hashes for either, which must be the same file.
	# (vLLM wants setuptools below 81, but says so for Python 3.12 alone.)
	echo 'setuptools<81' | $(GPU_COMPILE) --constraint - --universal --fork-strategy fewest --python-version $(firstword $(GPU_PYTHONS)) --upgrade | sed 's/ *;.*//' > $(GPU_LOCK).pins
	for version in $(GPU_PYTHONS); do \
	  $(GPU_COMPILE) --constraint $(GPU_LOCK).pins --python-platform x86_64-manylinux_2_28 --python-version $$version --generate-hashes \
	    > $(GPU_LOCK).$$version; \
	  cmp $(GPU_LOCK).$(firstword $(GPU_PYTHONS)) $(GPU_LOCK).$$version; \
	done
	mv $(GPU_LOCK).$(firstword $(GPU_PYTHONS)) $(GPU_LOCK)
	rm -f $(GPU_LOCK).*
	$(BIN)/python -m pytest -n0 -q -m '' tests/lint/test_pins.py

wheel: setup  ## dist/*.whl
	$(UV) build --wheel --no-build-isolation --python $(BIN)/python --quiet

clean:  ## remove what make and the tools left here; runs stay
	rm -rf $(VENV) dist build .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache
