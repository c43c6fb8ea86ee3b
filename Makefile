# Each target is what you could type by hand; the README has the same as plain pip lines for Windows.
PYTHON ?= python3
BIN := .venv/bin
AS_ROOT := $(shell [ "$$(id -u)" != 0 ] || echo --allow-root)  # as in a container; JupyterLab asks for it
ROUNDS ?= 30  # of make fuzz

.PHONY: lab test fuzz bench claims ready chromium notebooks format clean

lab: ready  ## set everything up and open the course in JupyterLab
	JUPYTER_PREFER_ENV_PATH=1 $(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/notebooks $(AS_ROOT)

test: ready chromium  ## set everything up and run all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	OMP_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/pytest -p no:nbval -n 2 --dist worksteal
	OMP_NUM_THREADS=1 PYTHONHASHSEED=0 $(BIN)/pytest --nbval --nbval-current-env --nbval-cell-timeout 600 -n 2 --dist loadfile -q notebooks

fuzz: ready  ## the tests that draw at random, with new seeds: about a minute a round
	OMP_NUM_THREADS=1 $(BIN)/python tests/fuzz.py --rounds $(ROUNDS) -n 2

bench: ready  ## our code beside its peers: a quarter of an hour
	$(BIN)/python -m pip install --quiet --constraint constraints.txt nano-gpt  # nanoGPT's model, a peer
	for name in training_step peak_memory generation bpe shakespeare; do $(BIN)/python benchmarks/$$name.py || exit 1; done

claims: ready  ## all lessons on five seeds with one thread, and on one with two, into docs/claims.md: hours
	$(BIN)/python benchmarks/claims.py --store

notebooks: ready  ## run every lesson and store its outputs
	$(BIN)/python -m course_lib run

format: ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

ready: .venv/installed
	$(BIN)/python -m course_lib fetch --quiet

.venv/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "The course needs Python 3.11 or newer; $(PYTHON) is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Setting the course up in .venv: 170 packages, 2 GB on disk; two to five minutes the first time."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[lab,test]'
	@touch $@

# The browser tests drive Chromium. CI on Debian installs it; elsewhere they are skipped where it is missing.
chromium:
	@command -v chromium >/dev/null || [ -z "$$CI" ] || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y chromium chromium-driver >/dev/null; }

clean:  ## remove the virtual environment; fetched data stay in the cache
	rm -rf .venv
