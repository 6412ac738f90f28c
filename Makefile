# The commands of this repository. A fresh machine needs make, bash and Python 3.11 or newer; scripts/java.sh finds or
# installs Java. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test test-unit fuzz test-spark test-streams test-peer test-all bench lint format venv clean

VENV := .venv
PEER_VENV := .venv-peer
PEER_JARS := .cache/peer-jars
PYTHON := $(VENV)/bin/python
JAVA := scripts/java.sh
# Two processes. Each file, and all of Spark Connect, is run by one of them (tests/support/scheduling.py).
BY_TWO := -n 2 --dist loadfile --no-loadscope-reorder
# The same for files whose tests share little: who has nothing left takes half of what the other has.
SHARED_OUT := -n 2 --dist worksteal
CODE := src tests $(wildcard examples benchmarks scripts)

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.installed ## copies a table, and applies change events to one, exactly once, killed half-way, on real data
	@$(JAVA) $(PYTHON) examples/demo.py
	@$(JAVA) $(PYTHON) examples/changing_flights.py

test: lint ## lint, and all tests except the comparison with the Delta JAR
	@$(JAVA) $(PYTHON) -m pytest -m "not peer" $(BY_TWO)

test-unit: $(VENV)/.installed ## the tests that need no JVM, except the slowest
	@$(PYTHON) -m pytest -m "not spark and not peer and not slow" $(BY_TWO)

test-spark: $(VENV)/.installed ## the tests that need a JVM
	@$(JAVA) $(PYTHON) -m pytest -m spark

test-streams: $(VENV)/.installed ## every recorded stream of Delta-Spark on Spark
	@$(JAVA) $(PYTHON) -m pytest tests/spark/test_recorded_streams.py --every-stream

fuzz: $(VENV)/.installed ## many more made-up logs, files and offsets than CI tries
	@$(PYTHON) -m pytest --hypothesis-profile=fuzz -m "not spark and not peer" $(BY_TWO)

# Two runs: the JAR's session needs settings that the other session must not have, and a process has one session only.
# One after the other, each in two processes: four JVMs at once would need more memory than a small machine has.
test-peer: $(PEER_VENV)/.installed ## on Spark 4.2: tests that depend on Spark's version, tests beside the Delta JAR (needs Maven)
	@scripts/peer_jars.sh $(PEER_JARS)
	@status=0; \
	$(JAVA) $(PEER_VENV)/bin/python -m pytest -m "spark and not one_spark" $(BY_TWO) || status=$$?; \
	$(JAVA) $(PEER_VENV)/bin/python -m pytest -m peer $(SHARED_OUT) --peer-jars=$(PEER_JARS) || status=$$?; \
	exit $$status

test-all: test test-peer ## test and test-peer, and the remaining JVM tests on Spark 4.2
	@$(JAVA) $(PEER_VENV)/bin/python -m pytest -m one_spark $(BY_TWO)

bench: $(PEER_VENV)/.installed ## measures tablefeed beside the Delta JAR (needs Maven)
	@scripts/peer_jars.sh $(PEER_JARS)
	@$(JAVA) $(PEER_VENV)/bin/python -m benchmarks --peer-jars=$(PEER_JARS)

lint: $(VENV)/.installed ## ruff and mypy
	@echo "lint: ruff, then mypy on src and tests (half a minute, the first time)"
	@$(PYTHON) -m ruff check --quiet $(CODE)
	@$(PYTHON) -m ruff format --quiet --check $(CODE)
	@$(PYTHON) -m mypy --no-error-summary src tests scripts/options_page.py

format: $(VENV)/.installed ## lets ruff correct what it can
	@$(PYTHON) -m ruff check --quiet --fix $(CODE)
	@$(PYTHON) -m ruff format --quiet $(CODE)

venv: $(VENV)/.installed ## creates the virtual environment of the other targets

$(VENV)/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(VENV) dev
	@touch $@

$(PEER_VENV)/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(PEER_VENV) peer
	@touch $@

clean: ## removes what was made; the downloads in .cache stay
	rm -rf $(VENV) $(PEER_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
