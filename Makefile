# make demo: install into .venv, run the first example, build the kernels. make test: the whole suite.
# make kernels: build in place what has changed in the kernels, for this machine.
# make docs: the documentation as a site. make reference, make gallery: its pages, and pictures, that
# are made by running the code.
# make slurm-references: record again, on a real Slurm, what tests/slurm compares with; hours.
# make experiments [SIZE=full]: every table and figure of the experiments, into results.

PYTHON ?= python3
BIN := .venv/bin

SIZE ?= small

.PHONY: clean demo docs experiments gallery kernels reference slurm-references test

demo: .venv/installed
	PTASKMODEL_KERNELS=interpreted $(BIN)/ptaskmodel simulate platforms/worked_example.xml \
	    experiments/first_steps/worked_example.json --output demo-results
	@echo
	@echo "demo-results/tasks.csv:"
	@cat demo-results/tasks.csv
	@echo
	@echo "Activate it with: . .venv/bin/activate   then begin your own: ptaskmodel init my-study"
	@echo
	@echo "That was interpreted. Now the kernels are built, once, in a minute or two; if you stop this,"
	@echo "the next run goes on with it."
	@$(BIN)/python -m ptaskmodel.kernels || echo "Until then numba compiles them when they are called."

kernels: .venv/installed
	$(BIN)/python -m ptaskmodel.kernels

test: .venv/installed-for-tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -n auto --dist loadfile

docs: .venv/installed-for-tests
	$(BIN)/mkdocs build --strict --site-dir site

reference: .venv/installed-for-tests
	$(BIN)/python docs/reference_pages.py

experiments: .venv/installed-for-tests
	$(BIN)/python experiments/remake.py $(SIZE) -o results

slurm-references: .venv/installed-for-tests
	$(BIN)/python tests/slurm/live/record.py --anew tests/slurm/reference/random/*
	PYTHONPATH=tests $(BIN)/python tests/slurm/live/record.py results/slurm-sites --seeds 1 2 3

gallery: .venv/installed-for-tests
	$(BIN)/python docs/pictures/draw_gallery.py

clean:
	rm -rf .venv .venv-oldest build demo-results ptaskmodel/_kernels.abi3.so site

.venv/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip 'setuptools>=77'

.venv/installed: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv, about 550 MB: a minute or two where the network is quick"
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[jit]'
	command -v $(firstword $(CC)) >/dev/null || $(BIN)/python -m pip install --quiet ziglang
	touch $@

# The oldest numba of pyproject.toml, for a part of the tests; it knows Python up to 3.13.
.venv-oldest/installed: pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info < (3, 14), "numba 0.61 needs Python 3.13 at most"'
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip 'setuptools>=77'
	PYTHONWARNINGS=ignore .venv-oldest/bin/python -m pip install --quiet --no-build-isolation --editable . \
	    'numba==0.61.*' pytest hypothesis
	touch $@

.venv/installed-for-tests: pyproject.toml | .venv/bin/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test]'
	touch $@ .venv/installed
