# `make test` and `make nuts` need nothing but make and a Python >= 3.11; everything is installed into .venv.
# Choose the interpreter with `make test PYTHON=/path/to/python`; pass options on with ARGS="...".

VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
SECONDS ?= 60
SEED ?= 0
PYTHON ?=
TORCH ?= torch
DYNET ?= dyNET38==2.2
GPU_JAX ?= 0.10.2
BENCH_JAX ?= jax[cuda12]
BENCH_TORCH ?= torch
DYNET_PYTHON ?= $(BIN)/python
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help test usual full fuzz mutants nuts networks dynet tfp gpu-check gpu-bench docs lint format bench check clean

help:
	@echo "make test    install into $(VENV), run the quick tests     ARGS=\"-k fib\" is passed to pytest"
	@echo "make usual   the usual cases of every test               40 minutes on two cores"
	@echo "make full    every case of every test, and line coverage  an hour"
	@echo "make fuzz    random programs against plain Python        SECONDS=600 SEED=20000 ARGS=\"--only jax\""
	@echo "make nuts    install and sample a posterior with NUTS    ARGS=\"--target eight-schools\""
	@echo "make networks  networks of examples/networks, checked against PyTorch    ARGS=\"drnn --train\" TORCH=torch==2.13.0+cpu"
	@echo "make gpu-check  what an H100 would launch, compiled without a GPU    ARGS=\"--only fib --write\": 10 minutes"
	@echo "make docs    the documentation as a site, build/docs/index.html    DOCS_CACHE=1 keeps what cells gave"
	@echo "make lint    ruff and mypy                               make format  lets ruff rewrite the files"
	@echo "make mutants  break the compiler on purpose, see who notices    ARGS=\"-j 2\": half an hour"
	@echo "make bench   measure against other ways to do it         ARGS=\"--quick --only nuts --out DIR\": 25 minutes"
	@echo "make gpu-bench  measure on the GPU that is there         ARGS=\"--only fib ode --seconds 500 --resume\""
	@echo "make check   lint, then test                             make clean   removes what make made"
	@echo "PYTHON=...   the interpreter that $(VENV) is made from (3.11 or newer)"

test: $(VENV)/.installed-test
	$(BIN)/python -m tools.suite --quick $(ARGS)

usual: $(VENV)/.installed-test
	$(BIN)/python -m tools.suite $(ARGS)

full: $(VENV)/.installed-test
	$(BIN)/python -m tools.suite --full --enough -m "not long" $(ARGS)
	$(BIN)/python -m tools.suite --full -m long $(ARGS)

fuzz: $(VENV)/.installed-test
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)

# JAX keeps what it has compiled: the next run with the same target compiles nothing.
nuts: $(VENV)/.installed-examples
	JAX_COMPILATION_CACHE_DIR="$${JAX_COMPILATION_CACHE_DIR-$(CURDIR)/build/compiled}" \
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="$${JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS-0}" \
	$(BIN)/python -m examples.nuts $(ARGS)

networks: build/torch/.installed
	build/torch/bin/python -m examples.networks $(or $(ARGS),all --train)

dynet: build/dynet/.installed

tfp: build/tfp/.installed

gpu-check: build/gpu/.installed
	build/gpu/bin/python -m tools.gpu_check $(ARGS)

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -j auto $(ARGS) docs build/docs

mutants: $(VENV)/.installed-test
	$(BIN)/python -m tools.mutate $(ARGS)

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks $(ARGS)

# JAX with CUDA has an environment of its own. BENCH_JAX=jax leaves CUDA out, for ARGS=--dry-run. PyTorch has another one,
# which only its processes use: its wheels and those of JAX ask for other releases of CUDA's libraries. BENCH_TORCH= leaves
# it out; the tables then say that it is not installed.
gpu-bench: build/gpu-bench/.installed $(if $(BENCH_TORCH),build/gpu-torch/.installed)
	build/gpu-bench/bin/python -m benchmarks.gpu $(if $(BENCH_TORCH),--torch build/gpu-torch/bin/python) $(ARGS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/api/typed_use.py
	$(BIN)/python -m tools.house

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

check: lint test

clean:
	rm -rf $(VENV) .venv-newest build dist docs/users/errors.md docs/developers/design *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps make a second run start at once; a change of setup.cfg installs again.
$(VENV)/.installed-test: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP_INSTALL) -e '.[test,examples]'
	@touch $@

$(VENV)/.installed-examples: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP_INSTALL) -e '.[examples]'
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP_INSTALL) -e '.[bench]'
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created setup.cfg pyproject.toml
	$(PIP_INSTALL) -e '.[dev]'
	@touch $@

# PyTorch and DyNet have environments of their own: the one is large, the other needs an old NumPy and has no JAX. Where the
# index of PyTorch can be reached, TORCH="torch --extra-index-url https://download.pytorch.org/whl/cpu" leaves CUDA out.
build/torch/.installed: $(VENV)/.created setup.cfg pyproject.toml
	$(BIN)/python -m venv --clear build/torch
	build/torch/bin/python -m pip install --quiet --disable-pip-version-check -e . $(TORCH)
	@touch $@

build/dynet/.installed: $(VENV)/.created
	$(DYNET_PYTHON) -m venv --clear build/dynet
	build/dynet/bin/python -m pip install --quiet --disable-pip-version-check 'numpy<2' cython $(DYNET)
	@touch $@

# The autobatching of TensorFlow Probability, which benchmarks/papers compares with.
build/tfp/.installed: $(VENV)/.created
	$(BIN)/python -m venv --clear build/tfp
	build/tfp/bin/python -m pip install --quiet --disable-pip-version-check tensorflow tensorflow-probability tf-keras
	@touch $@

build/gpu-bench/.installed: $(VENV)/.created setup.cfg pyproject.toml
	$(BIN)/python -m venv --clear build/gpu-bench
	build/gpu-bench/bin/python -m pip install --quiet --disable-pip-version-check \
	  -e '.[examples]' blackjax numpyro matplotlib $(BENCH_JAX)
	@touch $@

# JAX without CUDA, which makes the inputs on the CPU.
build/gpu-torch/.installed: $(VENV)/.created setup.cfg pyproject.toml
	$(BIN)/python -m venv --clear build/gpu-torch
	build/gpu-torch/bin/python -m pip install --quiet --disable-pip-version-check -e '.[examples]' $(BENCH_TORCH)
	@touch $@

# XLA's compiler for CUDA needs no GPU, and ptxas comes with Triton. Both plug-ins must be of JAX's own release.
build/gpu/.installed: $(VENV)/.created setup.cfg pyproject.toml
	$(BIN)/python -m venv --clear build/gpu
	build/gpu/bin/python -m pip install --quiet --disable-pip-version-check -e '.[examples]' \
	  jax==$(GPU_JAX) jaxlib==$(GPU_JAX) jax-cuda12-plugin==$(GPU_JAX) jax-cuda12-pjrt==$(GPU_JAX) triton
	@touch $@

# A candidate is run, not only looked up: a shim on PATH may stand for an interpreter that is not there, and some
# systems ship Python without venv.
$(VENV)/.created:
	@probe='import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))'; \
	found=''; \
	if [ -n "$(PYTHON)" ]; then \
	  candidates="$(PYTHON)"; \
	else \
	  candidates="python3 python python3.11 python3.12 python3.13 python3.14"; \
	fi; \
	for candidate in $$candidates; do \
	  if "$$candidate" -c "$$probe" >/dev/null 2>&1; then found="$$candidate"; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "pcbatch needs Python 3.11 or newer with the venv module; tried: $$candidates" >&2; \
	  echo "install one, or name it: make test PYTHON=/path/to/python3.11" >&2; \
	  exit 1; \
	fi; \
	echo "creating $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv --clear $(VENV)
	@touch $@
