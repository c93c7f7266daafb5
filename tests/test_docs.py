"""The reference has a page for every room, and Sphinx can read the Markdown of our docstrings."""

import pkgutil
import re
import runpy
from pathlib import Path

import pytest

import zhat

DOCS = Path(__file__).parent.parent / "docs"
NOT_ROOMS = {
    "cli",
    "citing",
    "demo",
    "estimator",
    "fresh",
    "progress",
    "randomness",
    "shown",
}  # described by `zhat`, or doors


@pytest.fixture(scope="module")
def as_rst():
    pytest.importorskip("sphinx")
    return runpy.run_path(str(DOCS / "conf.py"))["as_rst"]


def test_every_room_has_a_page():
    listed = re.findall(r"^    zhat\.(\w+)$", (DOCS / "reference.rst").read_text(encoding="utf-8"), re.M)
    rooms = {module.name for module in pkgutil.iter_modules(zhat.__path__) if not module.name.startswith("_")}
    assert rooms - NOT_ROOMS == set(listed)


def test_names_become_links_and_other_code_stays_code(as_rst):
    assert as_rst("`Pairs` of shape `(n, d)` in `.npy`") == "`Pairs` of shape ``(n, d)`` in ``.npy``"


def test_formulas_become_mathematics(as_rst):
    assert as_rst("the sum $a_i$") == "the sum :math:`a_i`"
    assert as_rst("$$a\n  = b$$") == "\n.. math::\n\n    a\n      = b\n"


def test_marks_of_rst_are_escaped_outside_code(as_rst):
    assert as_rst("mean |h - z| of `a * b`") == r"mean \|h - z\| of ``a * b``"


def test_a_section_on_one_line_gets_a_heading(as_rst):
    assert as_rst("Blind to: rotations\nand scale.\n\nMore.") == "Blind to:\n    rotations\n    and scale.\n\nMore."


def test_examples_are_left_alone(as_rst):
    assert as_rst("    >>> `x` | 2\n    a | b\n\nafter $x$") == "    >>> `x` | 2\n    a | b\n\nafter :math:`x`"


def test_a_table_becomes_a_list_of_rows(as_rst):
    made = as_rst("| `a` | b |\n|---|---|\n| 1 | $x$ |\n")
    assert made == "\n.. list-table::\n    :header-rows: 1\n\n    * - `a`\n      - b\n    * - 1\n      - :math:`x`\n\n"


def test_a_fence_may_hold_marks(as_rst):
    assert as_rst("```\na | `b`\n```\n") == "\n.. code-block:: text\n\n    a | `b`\n\n"


def test_text_between_two_tables_stays_text(as_rst):
    made = as_rst("| a |\n|---|\n| 1 |\n\nand `b * c`\n\n| d |\n|---|\n| 2 |\n")
    assert made.count(".. list-table::") == 2
    assert "\n\nand ``b * c``\n\n" in made


def test_bold_words_stay_bold(as_rst):
    assert as_rst("**One** of 2 * 3") == r"**One** of 2 \* 3"


def test_every_tutorial_is_listed_and_offers_its_notebook():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = sorted((DOCS / "tutorials").glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        assert f"\ntutorials/{page.stem}\n" in index
        assert f"{{nb-download}}`{page.stem}.ipynb`" in page.read_text(encoding="utf-8")
