# The commands of this repository. A fresh machine needs make, bash and Python 3.11 or newer; scripts/java.sh finds or
# installs Java. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo new-user docs package test test-unit test-oldest simulate fuzz windows mutants test-stores test-page test-spark test-streams test-cluster test-peer test-all bench lint format venv peer clean

VENV := .venv
PEER_VENV := .venv-peer
OLDEST_VENV := .venv-oldest
PEER_JARS := .cache/peer-jars
STORE_SERVERS := .cache/store-servers
PYTHON := $(VENV)/bin/python
JAVA := scripts/java.sh
# Two processes. Each file, and all of Spark Connect, is run by one of them (tests/support/scheduling.py).
BY_TWO := -n 2 --dist loadfile --no-loadscope-reorder
# The same for files whose tests share little: who has nothing left takes half of what the other has.
SHARED_OUT := -n 2 --dist worksteal
# The schedules that `make simulate` makes up: the seed of the first, and how many.
FIRST := 0
SCHEDULES := 10000
# The simulation has a target of its own.
BESIDE_IT := --ignore=tests/simulation
# Of tests with many cases a run takes a quarter. EVERY_CASE=1 takes all.
CASES := $(if $(EVERY_CASE),--every-case)
# Of the tests that ran on the newest Spark a run repeats every second one on 4.2.
HALF := $(if $(EVERY_CASE),,--half)
CODE := src tests $(wildcard examples benchmarks scripts)

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(VENV)/.installed ## copies a table, and applies change events to one, exactly once, killed half-way, on real data
	@$(JAVA) $(PYTHON) examples/demo.py
	@$(JAVA) $(PYTHON) examples/changing_flights.py

docs: $(VENV)/.installed ## builds the site of docs into build/site, with warnings as errors
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --quiet
	@echo "docs: python -m http.server -d build/site shows it; search needs a server"

test: lint ## lint, and all tests except the comparison with the Delta JAR; EVERY_CASE=1
	@$(JAVA) $(PYTHON) -m pytest -m "not peer" $(BY_TWO) $(BESIDE_IT) $(CASES)

test-unit: $(VENV)/.installed ## the tests that need no JVM, except the slowest
	@$(PYTHON) -m pytest -m "not spark and not peer and not slow" $(BY_TWO) $(BESIDE_IT)

# These need newer tools than the oldest packages allow: the site of docs, and an exporter of OpenTelemetry.
NEW_TOOLS := --ignore=tests/docs/test_site.py --deselect=tests/spark_words/test_metrics_listener.py::test_opentelemetrys_own_exporter_for_prometheus_gives_the_same_names_labels_and_numbers
test-oldest: $(VENV)/.installed ## the same with the oldest packages that pyproject.toml allows, in a virtual environment of their own
	@mkdir -p build && $(PYTHON) scripts/oldest.py > build/oldest.txt
	@PIP_CONSTRAINT=$(CURDIR)/build/oldest.txt scripts/venv.sh $(OLDEST_VENV) test
	@$(OLDEST_VENV)/bin/python -m pytest -m "not spark and not peer and not slow" $(BY_TWO) $(BESIDE_IT) $(NEW_TOOLS)

mutants: $(VENV)/.installed ## breaks 1,000 places of src, one at a time: the tests must notice each
	@PYTHONPATH=src $(PYTHON) scripts/mutants.py build/mutants

test-stores: $(VENV)/.installed ## the tests of all stores, beside servers of object stores (needs Go and npm)
	@scripts/store_servers.sh $(STORE_SERVERS)
	@$(PYTHON) -m pytest --every-store --every-case tests/store tests/feed/api/test_object_stores.py \
		tests/feed/api/test_append_to_s3.py tests/feed/test_requests_page.py $(SHARED_OUT)

test-page: $(VENV)/.installed ## the pages of tablefeed report in Chromium, which it installs; pictures in build/pages
	@scripts/chromium.sh
	@$(PYTHON) -m pytest tests/report tests/cli/test_report.py tests/cli/test_report_in_a_browser.py

windows: $(VENV)/.installed ## kills a process at each call of a store, in each scenario
	@rm -rf build/windows && PYTHONPATH=src:tests $(PYTHON) -m faults.windows build/windows --every

test-spark: $(VENV)/.installed ## the tests that need a JVM
	@$(JAVA) $(PYTHON) -m pytest -m spark

test-streams: $(VENV)/.installed ## every recorded stream of Delta-Spark on Spark, and every change of a schema
	@$(JAVA) $(PYTHON) -m pytest tests/spark/test_recorded_streams.py tests/spark/test_widened_types.py \
		tests/spark/test_evolved_copies.py --every-stream

test-cluster: $(VENV)/.installed ## source, sink, change feed and row changes on a standalone cluster, also while workers die
	@$(JAVA) $(PYTHON) -m pytest --cluster tests/cluster

simulate: $(VENV)/.installed ## made-up schedules of writers, readers, upkeep and faults; SCHEDULES=1000000 takes four hours or more
	@FIRST=$(FIRST) SCHEDULES=$(SCHEDULES) $(PYTHON) -m pytest tests/simulation $(SHARED_OUT)

SECONDS := 60
fuzz: $(VENV)/.fuzz ## each decoder for SECONDS=60, or only TARGET=...; then many more made-up logs than CI tries
	@PYTHONPATH=tests $(PYTHON) -m fuzzing --seconds=$(SECONDS) $(TARGET)
	@[ -n "$(TARGET)" ] || $(PYTHON) -m pytest --hypothesis-profile=fuzz -m "not spark and not peer" $(BY_TWO) $(BESIDE_IT)

# The folder of a mark, and the files of others with tests of it: collecting all takes each process twenty seconds.
marked = tests/$(1) $(sort $(shell grep -rlw --include='test_*.py' 'mark[.]$(1)' tests))
# Two runs: the JAR's session needs settings that the other session must not have, and a process has one session only.
# One after the other, each in two processes: four JVMs at once would need more memory than a small machine has.
test-peer: peer ## on Spark 4.2: what depends on its version, and tests beside the Delta JAR; EVERY_CASE=1 (needs Maven)
	@status=0; \
	$(JAVA) $(PEER_VENV)/bin/python -m pytest -m "spark and not one_spark" $(BY_TWO) $(HALF) $(call marked,spark) || status=$$?; \
	$(JAVA) $(PEER_VENV)/bin/python -m pytest -m peer $(SHARED_OUT) --peer-jars=$(PEER_JARS) $(CASES) \
		$(call marked,peer) || status=$$?; \
	exit $$status

test-all: test test-peer ## test and test-peer, and the remaining JVM tests on Spark 4.2
	@$(JAVA) $(PEER_VENV)/bin/python -m pytest -m one_spark $(BY_TWO)

new-user: $(VENV)/.installed ## plays a new user with the wheel, and writes the transcripts of tests/new_user anew
	@PYTHONPATH=src:tests $(JAVA) $(PYTHON) -m new_user

package: $(VENV)/.installed ## builds wheel and sdist into dist, and checks both as PyPI does
	@rm -rf dist && $(PYTHON) -m build --no-isolation --outdir dist . >/dev/null
	@$(VENV)/bin/twine check --strict dist/*
	@$(VENV)/bin/check-wheel-contents dist/*.whl

bench: peer ## measures tablefeed beside the Delta JAR (needs Maven)
	@$(JAVA) $(PEER_VENV)/bin/python -m benchmarks --peer-jars=$(PEER_JARS)

lint: $(VENV)/.installed ## ruff and mypy
	@echo "lint: ruff, then mypy on src and tests (half a minute, the first time)"
	@$(PYTHON) -m ruff check --quiet $(CODE)
	@$(PYTHON) -m ruff format --quiet --check $(CODE)
	@$(PYTHON) -m mypy --no-error-summary src tests scripts/options_page.py scripts/site_hooks.py

format: $(VENV)/.installed ## lets ruff correct what it can
	@$(PYTHON) -m ruff check --quiet --fix $(CODE)
	@$(PYTHON) -m ruff format --quiet $(CODE)

venv: $(VENV)/.installed ## creates the virtual environment of the other targets

peer: $(PEER_VENV)/.installed ## creates the virtual environment of Spark 4.2, and fetches the Delta JAR (needs Maven)
	@$(JAVA) scripts/peer_jars.sh $(PEER_JARS)

$(VENV)/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(VENV) dev
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed
	@scripts/venv.sh $(VENV) fuzz
	@touch $@

$(PEER_VENV)/.installed: pyproject.toml scripts/venv.sh
	@scripts/venv.sh $(PEER_VENV) peer
	@touch $@

clean: ## removes what was made; the downloads in .cache stay
	rm -rf $(VENV) $(PEER_VENV) $(OLDEST_VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: soak
MAVEN := $(shell command -v mvn)
SOAK_VENV := $(if $(MAVEN),$(PEER_VENV),$(VENV))
SOAK_MINUTES := 60
soak: $(SOAK_VENV)/.installed ## an hour (SOAK_MINUTES) of writers, queries and SIGKILLs on five tables (with Maven: the JAR too)
	@$(if $(MAVEN),scripts/peer_jars.sh $(PEER_JARS))
	@PYTHONPATH=tests $(JAVA) $(SOAK_VENV)/bin/python -m soak --minutes=$(SOAK_MINUTES) \
	  $(if $(SOAK_SEED),--seed=$(SOAK_SEED)) $(if $(MAVEN),--peer-jars=$(PEER_JARS))
