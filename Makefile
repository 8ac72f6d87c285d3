# make demo: install into .venv and run the first example. make test: the whole suite.
# make docs: the documentation as a site. make reference, make gallery: its pages, and pictures, that
# are made by running the code.
# make experiments [SIZE=full]: every table and figure of the experiments, into results.

PYTHON ?= python3
BIN := .venv/bin

SIZE ?= small

.PHONY: clean demo docs experiments gallery reference test

demo: .venv/installed
	$(BIN)/ptaskmodel simulate platforms/worked_example.xml \
	    experiments/first_steps/worked_example.json --output demo-results
	@echo
	@echo "demo-results/tasks.csv:"
	@cat demo-results/tasks.csv
	@echo
	@echo "Activate it with: . .venv/bin/activate   then begin your own: ptaskmodel init my-study"

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

gallery: .venv/installed-for-tests
	$(BIN)/python docs/pictures/draw_gallery.py

clean:
	rm -rf .venv .venv-oldest demo-results site

.venv/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "Python 3.11 or later is needed"'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/installed: pyproject.toml | .venv/bin/python
	@echo "Installing into .venv, about 550 MB: a minute or two where the network is quick"
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable .
	touch $@

# The oldest numba of pyproject.toml, for a part of the tests; it knows Python up to 3.12.
.venv-oldest/installed: pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info < (3, 13), "numba 0.60 needs Python 3.12 at most"'
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS=ignore .venv-oldest/bin/python -m pip install --quiet --editable . \
	    'numba==0.60.*' pytest hypothesis
	touch $@

.venv/installed-for-tests: pyproject.toml | .venv/bin/python
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ .venv/installed
