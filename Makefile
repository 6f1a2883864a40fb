# Everything a person or CI does here. Needs Python 3.11 or newer, and Node 20 or newer for the
# widgets; all else goes into .venv, at the versions of requirements.lock, and widgets/node_modules.

PYTHON ?= python3
ENVIRONMENT := .venv
BIN := $(ENVIRONMENT)/bin
PY := $(BIN)/python
# uv if there is one, else one of our own: it installs in seconds what takes pip a minute.
UV := $(or $(shell command -v uv 2>/dev/null),$(ENVIRONMENT)/uv/bin/uv)
INSTALL := VIRTUAL_ENV=$(ENVIRONMENT) $(UV) pip install --quiet
LOCK := requirements.lock
STATIC := sagents_nb/panel/static
PAGE_STATIC := sagents_nb/hub/web/static
PYTEST := $(PY) -m pytest -q

# Stamps: what they stand for is redone only when something it was made from is newer.
ENV := $(ENVIRONMENT)/.installed
NODE_MODULES := widgets/node_modules/.package-lock.json
CLIENTS := tests/hub/dialects/clients
CLIENT_MODULES := $(CLIENTS)/node_modules/.package-lock.json
BUNDLE := $(STATIC)/panel.js $(PAGE_STATIC)/dashboard.js
WIDGET_SOURCES := widgets/build.mjs $(shell find widgets/src -type f)

# uv compiles nothing when it installs, and some containers have Python keep nothing that it compiles:
# each of the hundreds of kernels that tests start would compile pandas and Jupyter anew.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help tour test test-newest lock lint spec-check spec-coverage public-face test-python test-servers test-widgets test-notebooks \
	test-packaging test-browser test-model docs soak pictures mutants bench clean

help:  ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

tour: $(ENV) $(BUNDLE)  ## Open the tour in JupyterLab; with HEADLESS=1 run it here and print it
ifdef HEADLESS
	$(PY) -m sagents_nb.notebook.headless notebooks/tour.ipynb
else
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/tour.ipynb
endif

test: lint spec-check test-python test-widgets test-notebooks test-packaging test-browser  ## Run everything below, the cheap first

test-newest:  ## The same in .venv-newest, with the newest versions that pyproject.toml allows
	rm -f .venv-newest/.installed
	$(MAKE) ENVIRONMENT=.venv-newest test

lint: $(ENV)  ## Style, types, the floors of the house, and who reaches into another's privates
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(PY) tests/privates.py

spec-check: $(ENV)  ## Fail when docs/specification.md is not what the markers say
	$(PY) tests/specification.py --check

test-python: $(ENV) $(CLIENT_MODULES)  ## Unit tests and doctests
	$(PY) tests/store/postgres.py
	$(PYTEST) -p no:nbval -n 3 --dist loadfile --no-loadscope-reorder \
		-m "not engine and not soak and not browser and not packaging"

test-servers: $(ENV)  ## The store's tests with the newest PostgreSQL, and through a pool in both of its modes
	$(PY) tests/store/postgres.py
	$(INSTALL) --group servers
	POSTGRES_PROGRAMS=$$($(PY) tests/store/postgres.py newest) $(PYTEST) -n 3 tests/store tests/files/storages
	POSTGRES_POOL_MODE=transaction $(PYTEST) -n 3 tests/store tests/files/storages
	POSTGRES_POOL_MODE=session $(PYTEST) -n 3 tests/store tests/files/storages

test-widgets: $(NODE_MODULES)  ## Types and tests of the TypeScript
	cd widgets && npm run --silent check && npm --silent test

test-notebooks: $(ENV) $(BUNDLE)  ## Re-run every notebook and compare its outputs
	@if ls notebooks/*.ipynb >/dev/null 2>&1; then \
		$(PYTEST) -p sagents_nb.notebook.testing.plugin --sagents \
			--nbval-cell-timeout 120 --timeout 600 notebooks; \
	else echo "There is no notebook yet."; fi

test-packaging: $(ENV) $(BUNDLE)  ## Build wheel and sdist from a clean clone, install and use them
	$(PYTEST) -m packaging --timeout 600 tests/packaging

test-browser: $(ENV) $(BUNDLE)  ## The main ways through JupyterLab, Notebook 7, marimo and the hub in Chromium; the rest is soak
	$(PY) tests/browser/chromium.py
	$(PYTEST) -n 2 --dist loadfile -m "browser and not soak" tests/browser

docs: $(ENV)  ## Build the site into site/, strictly and without a network, and check its links
	$(PY) -m tests.docs.site

test-model: $(ENV)  ## With a real, small language model on this machine's CPU
	$(INSTALL) --group engine
	$(PYTEST) -m engine --timeout 900 tests

soak: $(ENV) $(BUNDLE)  ## Tests that run for minutes
	$(PY) tests/browser/chromium.py
	$(PYTEST) -m soak --timeout 3600 tests

pictures: $(ENV) $(BUNDLE)  ## Rewrite docs/pictures where the panel looks different: look at each before you commit it
	$(PY) tests/browser/chromium.py
	REWRITE_PICTURES=1 $(PYTEST) -m soak --timeout 600 tests/browser/test_pictures.py

mutants: $(ENV) $(BUNDLE)  ## Break what is committed in 300 small ways and see whether a test notices (hours)
	$(INSTALL) --group mutation
	$(PY) tests/mutants.py

bench: $(ENV)  ## Run the benchmarks, and write what they found into benchmarks/README.md
	$(PY) benchmarks/all.py

spec-coverage: $(ENV)  ## Write docs/specification.md: what we promise, and the tests that prove it
	$(PY) tests/specification.py

public-face: $(ENV)  ## Rewrite the list of public names: only when one is meant to go or to change
	$(PY) tests/public_face.py

lock: | $(UV)  ## Rewrite requirements.lock with the newest versions that pyproject.toml allows
	$(UV) pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' \
		--extra all --group dev --group docs --output-file $(LOCK) pyproject.toml

clean:  ## Remove all that was built or installed here
	rm -rf .venv .venv-* widgets/node_modules $(CLIENTS)/node_modules widgets/dist widgets/dev/dist $(STATIC) $(PAGE_STATIC) dist build site .test-artifacts
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What builds the editable install is in the lock too, so nothing is fetched beside it. It puts the
# extension of JupyterLab where that looks for it, as a copy.
$(ENV): $(LOCK) pyproject.toml hatch_build.py widgets/src/reopened.ts | $(BUNDLE) $(PY) $(UV)
ifeq ($(ENVIRONMENT),.venv)
	$(INSTALL) --require-hashes --requirements $(LOCK)
	$(INSTALL) --no-deps --no-build-isolation --editable .
else
	$(INSTALL) --upgrade --editable '.[all]' --group dev --group docs
endif
	touch $@

$(PY):
	$(PYTHON) -m venv $(ENVIRONMENT)

# Beside the environment, so that uv installs the environment's own and its cache knows all.
$(ENVIRONMENT)/uv/bin/uv: | $(PY)
	sed -n '/^uv==/,/# via/p' $(LOCK) >$(ENVIRONMENT)/uv.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes \
		--requirement $(ENVIRONMENT)/uv.lock --target $(ENVIRONMENT)/uv

$(NODE_MODULES): widgets/package.json widgets/package-lock.json
	cd widgets && npm ci --no-audit --no-fund --no-update-notifier
	touch $@

# Clients of a hub that want a newer Node than the widgets do. It comes along as a package of 185 MB,
# where the machine's is older.
$(CLIENT_MODULES): $(CLIENTS)/package.json $(CLIENTS)/package-lock.json
	cd $(CLIENTS) && npm ci --no-audit --no-fund --no-update-notifier --loglevel=error \
		$$(node -e 'if (parseInt(process.versions.node) >= 22) console.log("--omit=optional")')
	touch $@

# One build makes all of it.
$(BUNDLE) &: $(NODE_MODULES) $(WIDGET_SOURCES)
	cd widgets && npm run --silent build
	touch $(BUNDLE)
