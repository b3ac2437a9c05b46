# Each target sets up what it needs. On a machine with Python ≥ 3.11 and make nothing else has to be installed.
#   make quick       Table 4 and an example of each source in 90 seconds to three minutes, printed and as pages
#   make reproduce   data → methods → tables, figures, site       (ARGS="…" goes to snakemake; PYTHON=… picks the Python)
#   make reproduce FROM=archive   the same from the results in archive/: nothing is computed, no data are needed
#   make archive      runs at scale paper that archive/ lacks, computed and added to it  (ARGS=maxent_table4 names experiments)
#   make check-archive   a random sample of cheap runs of archive/, computed again and compared  (SAMPLE=10)
#   make test        all tests
#   make coverage    all tests again, with the lines and branches that no test runs
#   make mutants     planted bugs that no test notices  (SAMPLE=200; ARGS=--quick runs quick tests only, ARGS=--kinds plants those that people make; needs `make coverage` once)
#   make ui          MLflow's pages on the runs  (PORT=5001 picks the port)
#   make retry       what was not available or failed, once more
#   make clean       deletes everything generated; downloads stay
#   make bench       speed beside named peers; the site shows the last one
#   make spark       PySpark into .venv, for agglearn.spark and its tests (needs Java 17 or newer)
#   make slurm       Snakemake's plugin for Slurm into .venv, for profiles/slurm
#   make slurm-test  a source at scale smoke through a Slurm of its own, beside this machine alone (needs slurm-wlm and munge)
#   make peers       what the benchmarks compare with: Private-PGM, OptBinning, DuckDB, Polars, PyEI
#   make docs        guide, sources, examples, API and configuration as pages: results/docs/index.html
#   make public      docs and the site of archive/ in one folder to publish: results/public
#   make web         the site and MLflow's pages in a browser, with screenshots (installs Chromium where it may)
#   make lint        style of code and workflow, layers of modules, types, public docstrings
#   make lowest      three experiments with the lowest versions that pyproject.toml allows, in an environment of their own
#   make image       a container image with everything, where Docker is  (DOCKER=podman for another engine)
#   make lock        new pins from pyproject.toml
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
RESULTS ?= results
PORT = 5000
BENCHMARKS = aggregation collective distribution labelsums maxent proportions vocabulary
DOCKER ?= docker
FROM ?=
SAMPLE = 200
check-archive: SAMPLE = 10
# One worker more than cores, for tests of whole runs wait for their jobs.
PARALLEL = -n $(shell $(PYTHON) -c "import os; print(min(4, os.cpu_count() + 1))") --dist loadfile --no-loadscope-reorder
BIN = $(VENV)/bin
READY = $(VENV)/.ready
EXTRAS = workflow networks privacy generic docs dev

.PHONY: quick reproduce archive check-archive test coverage mutants ui retry clean bench spark slurm slurm-test peers docs public web lint lowest image lock
.DEFAULT_GOAL := reproduce

$(READY): requirements.lock pyproject.toml workflow/scripts/setup.sh workflow/scripts/install.py
	@sh workflow/scripts/setup.sh "$(PYTHON)" "$(VENV)"
	@touch $@

quick: SETTINGS = --configfile=config/quick.yaml
archive: SETTINGS = --configfile=config/to_archive.yaml
reproduce: SETTINGS = $(FROM:%=--configfile=config/from_%.yaml)
quick reproduce archive: $(READY)
	@$(BIN)/agglearn reproduce $(SETTINGS) -- $(ARGS)

check-archive: $(READY)
	@$(BIN)/agglearn archive check --sample $(SAMPLE) $(ARGS)

retry: $(READY)
	@again=$$($(BIN)/python -m agglearn_workflow.run_summary $(RESULTS)); \
	if [ -z "$$again" ]; then echo "agglearn: nothing to try again"; \
	else $(MAKE) reproduce ARGS="$(ARGS) --forcerun $$(echo $$again)"; fi

test: $(READY)
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

.mutants/.ready: $(READY)
	@$(BIN)/python workflow/scripts/install.py -c requirements.lock $$($(BIN)/python workflow/scripts/extra.py mutation)
	@mkdir -p .mutants && touch $@

# What the processes of the tests write after the end of pytest is added before the report.
coverage: export COVERAGE_FILE = $(CURDIR)/.mutants/coverage
coverage: .mutants/.ready
	@rm -f .mutants/coverage*
	@$(BIN)/python -m pytest $(PARALLEL) -p pytest_cov --cov --cov-context=test --cov-report= --junitxml=.mutants/times.xml $(ARGS); status=$$?; \
	$(BIN)/coverage combine --quiet --append; $(BIN)/coverage report --skip-covered --show-missing && exit $$status

.mutants/coverage:
	@$(MAKE) coverage

mutants: .mutants/.ready .mutants/coverage
	@cd tests && $(abspath $(BIN))/python -m mutation --sample $(SAMPLE) $(ARGS)

ui: $(READY)
	@exec $(BIN)/python -m agglearn_workflow.tracking.ui $(PORT)

clean: $(READY)
	@$(BIN)/python -m agglearn_workflow.cleaning $(ARGS)

bench: $(READY)
	@mkdir -p $(RESULTS)/bench; export BENCH=$(RESULTS)/bench; for name in $(BENCHMARKS); do echo "== $$name"; \
	out=$$BENCH/$$name.txt; $(BIN)/python benchmarks/$$name.py > $$out.new || exit 1; cat $$out.new; mv $$out.new $$out; done; \
	$(BIN)/python benchmarks/_common.py $$BENCH

spark: $(READY)
	@$(BIN)/python workflow/scripts/install.py --no-build-isolation --require-hashes -r requirements-spark.lock
	@java -version >/dev/null 2>&1 || echo "agglearn: PySpark is installed, but there is no java; Spark needs Java 17 or newer" >&2

slurm: $(READY)
	@$(BIN)/python workflow/scripts/install.py -c requirements.lock $$($(BIN)/python workflow/scripts/extra.py slurm)

slurm-test: $(READY)
	@$(BIN)/python workflow/scripts/slurm_test.py $(ARGS)

peers: $(READY)
	@$(BIN)/python workflow/scripts/install.py -c requirements.lock \
	  $$($(BIN)/python workflow/scripts/extra.py peers)

docs: $(READY)
	@$(BIN)/sphinx-build --builder html --quiet --fail-on-warning --keep-going --doctree-dir $(RESULTS)/docs/.doctrees docs $(RESULTS)/docs
	@echo "agglearn: $(RESULTS)/docs/index.html"

# The site links to the docs where they are, and both by relative addresses, so they keep their places.
public: docs
	@$(MAKE) --no-print-directory reproduce FROM=archive
	@rm -rf $(RESULTS)/public && mkdir $(RESULTS)/public && cp -r $(RESULTS)/site $(RESULTS)/docs $(RESULTS)/public
	@echo '<!doctype html><title>agglearn</title><meta http-equiv="refresh" content="0; url=site/index.html">' > $(RESULTS)/public/index.html
	@echo "agglearn: $(RESULTS)/public/index.html"

web: $(READY)
	@sh workflow/scripts/browser.sh && $(BIN)/python -m pytest tests/web $(ARGS)

lint: $(READY)
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/snakefmt --check Snakefile workflow/Snakefile rules && \
	$(BIN)/snakemake --lint && $(BIN)/lint-imports --no-logo --no-cache && \
	$(BIN)/mypy && $(BIN)/python workflow/scripts/docstrings.py

lowest: $(READY)
	@$(BIN)/python -m venv --clear .lowest && mkdir -p .lowest/work
	@.lowest/bin/python workflow/scripts/install.py --resolution lowest-direct --editable '.[all]'
	@.lowest/bin/snakemake --directory .lowest/work --config scale=smoke -- \
	  maxent_xor collective_figure3 distribution_digits

image:
	@$(DOCKER) build --tag agglearn .

lock: $(READY)
	@$(BIN)/uv pip compile pyproject.toml $(EXTRAS:%=--extra %) --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --quiet --upgrade --output-file requirements.lock
	@$(BIN)/python workflow/scripts/extra.py spark | \
	  $(BIN)/uv pip compile - --constraint requirements.lock --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --quiet --upgrade --output-file requirements-spark.lock
	@$(BIN)/python workflow/scripts/environment.py
