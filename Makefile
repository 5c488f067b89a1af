# Two commands do everything on a machine with git, make and a Python, 3.11 to 3.14:
#   make demo   find Galileo's law in his data, and report it
#   make test   lint, types, import layers, tests, doctests
# `make docs` builds the documentation in docs/_build/html, in an environment of its own (3.12 and later).
# `make paper` repeats the paper's experiments at full size (hours) and puts them into docs/paper.
# `make fuzz` attacks pmsr with random input for some minutes: strings, graphs, data, files, threads, kills.
# `make check-report` looks at reports in Chromium, which it needs.
# `make lock` resolves the versions anew; it needs Python 3.11 and 3.12.

.DEFAULT_GOAL := demo
.PHONY: demo test docs paper fuzz lint check-next check-report lock clean .venv .venv-next .venv-docs

LOCKS := requirements/py311.txt requirements/py312.txt
SCRIPTS := scripts/find-python scripts/make-env
# What the second lock can be installed on.
NEXT := 3.12 3.13 3.14

# Workers already use every core: threads inside them would only compete.
PYTEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MPLBACKEND=Agg
# A file stays with one worker, which so compiles each PyTensor function once.
PYTEST_ARGS := -n 2 --dist loadfile

demo: .venv/stamp
	.venv/bin/pmsr demo --out pmsr-demo

test: lint .venv/stamp
	$(PYTEST_ENV) .venv/bin/pytest $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory check-next

lint: .venv/stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports --no-logo

# The quick tests on PyMC 6 and ArviZ 1.x, where a Python for them is at hand and .venv is not
# that lane already.
check-next:
	@if ! cmp -s requirements/py311.txt .venv/lock.txt; then \
	    echo "The default environment is the newer lane: nothing more to test."; \
	elif ! scripts/find-python $(NEXT) >/dev/null; then \
	    echo "No Python among $(NEXT) on this machine: the newer lane is not tested."; \
	else \
	    $(MAKE) --no-print-directory .venv-next/stamp && \
	    $(PYTEST_ENV) .venv-next/bin/pytest $(PYTEST_ARGS) -m "not slow"; \
	fi

# Notebooks that have not changed are not run again: their outputs are kept in docs/_build.
docs: .venv-docs/stamp
	OMP_NUM_THREADS=1 .venv-docs/bin/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# What is done already is not done again: an interrupted run goes on. PEER=PYTHON names one with the
# paper's own implementation, see benchmarks/speed.py.
paper: .venv/stamp
	OMP_NUM_THREADS=1 .venv/bin/pmsr reproduce all --jobs -1 --out paper-reproduced $(if $(PEER),--peer $(PEER))
	scripts/publish-paper paper-reproduced docs/paper

# Other inputs: make fuzz FUZZ="--seed 1"; some attacks: make fuzz FUZZ="strings graphs".
fuzz: .venv/stamp
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv/bin/python -m fuzz $(FUZZ)

check-report: .venv/stamp
	$(PYTEST_ENV) .venv/bin/python scripts/check_report.py

.venv: .venv/stamp

.venv-next: .venv-next/stamp

.venv-docs: .venv-docs/stamp

.venv/stamp: $(LOCKS) $(SCRIPTS) pyproject.toml
	scripts/make-env .venv 3.11 $(NEXT)

.venv-next/stamp: $(LOCKS) $(SCRIPTS) pyproject.toml
	scripts/make-env .venv-next $(NEXT)

.venv-docs/stamp: $(LOCKS) requirements/docs.txt $(SCRIPTS) pyproject.toml
	MORE=requirements/docs.txt scripts/make-env .venv-docs $(NEXT)

lock:
	scripts/lock 3.11 requirements/py311.txt
	scripts/lock 3.12 requirements/py312.txt
	scripts/lock 3.12 requirements/docs.txt requirements/py312.txt

clean:
	rm -rf .venv .venv-next .venv-docs docs/_build docs/notebooks .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
