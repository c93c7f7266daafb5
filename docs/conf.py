"""Sphinx settings. Docstrings are Markdown with TeX and Google sections; `as_rst` rewrites them for autodoc."""

import hashlib
import re
import sys
from pathlib import Path
from textwrap import dedent, indent

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))

from zhat import __version__  # noqa: E402


def source_digest():
    """Eight characters that change with the source of the package."""
    files = sorted((HERE.parent / "src").rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


project = "zhat"
author = "The zhat developers"
copyright = "2026, The zhat developers"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_templates"]
suppress_warnings = ["myst.header"]

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

# Tutorials run when the docs are built. Their outputs are kept as long as neither they nor the package change.
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / f"tutorials-{source_digest()}")
nb_execution_in_temp = True
nb_execution_timeout = 240
nb_execution_raise_on_error = True
nb_merge_streams = True
nb_render_markdown_format = "myst"

templates_path = ["_templates"]
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
default_role = "py:obj"  # a name in backticks is a link wherever a page describes it
add_module_names = False
napoleon_custom_sections = ["Blind to", "Reference", "Not symmetric", "Diverged"]
napoleon_attr_annotations = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

html_theme = "furo"
html_title = "zhat"
html_static_path = ["static"]
html_css_files = ["zhat.css"]


BLOCK = re.compile(
    r"^\$\$(?P<math>[^$]*)\$\$$"
    r"|^```\n(?P<code>(?s:.*?))^```$"
    r"|(?P<table>(?:^\|.*\|(?:\n|\Z))+)"
    r"|(?P<example>^ *>>> .*(?:\n.*\S.*)*)",  # to the next empty line
    re.M,
)
INLINE = re.compile(r"`(?P<code>[^`]+)`|(?<![\w$])\$(?P<math>[^$]+)\$(?![\w$])|(?P<bold>\*\*[^*]+\*\*)|(?P<mark>[|*])")
SECTION = re.compile(rf"^({'|'.join(napoleon_custom_sections)}): (.+(?:\n\S.*)*)", re.M)


def as_rst(text):
    """One of our docstrings in reStructuredText: formulas, code and tables, marks in a line, headings of sections."""
    text = SECTION.sub(lambda m: f"{m[1]}:\n" + indent(m[2], "    "), text)
    done, end = [], 0
    for block in BLOCK.finditer(text):
        done += [INLINE.sub(_inline, text[end : block.start()]), _block(block)]
        end = block.end()
    return "".join([*done, INLINE.sub(_inline, text[end:])])


def _block(found):
    if found["example"] is not None:
        return found["example"]
    if found["table"] is not None:
        return _table(found["table"])
    directive, lines = ("math::", found["math"]) if found["math"] is not None else ("code-block:: text", found["code"])
    return f"\n.. {directive}\n\n{indent(dedent(lines).strip(), '    ')}\n"


def _table(text):
    """A Markdown table, whose second line only separates, as a list-table."""
    lines = [line.strip("|").split("|") for line in text.splitlines()]
    rows = [[INLINE.sub(_inline, cell.strip()) for cell in line] for line in (lines[0], *lines[2:])]
    items = "\n".join("    * - " + "\n      - ".join(row) for row in rows)
    return f"\n.. list-table::\n    :header-rows: 1\n\n{items}\n\n"


def _inline(found):
    if found["bold"] is not None:
        return found["bold"]
    if found["mark"] is not None:
        return f"\\{found['mark']}"
    if found["math"] is not None:
        return f":math:`{found['math']}`"
    name = re.fullmatch(r"[A-Za-z_][\w.]*", found["code"])
    return f"`{found['code']}`" if name else f"``{found['code']}``"


def process_docstring(app, what, name, thing, options, lines):
    lines[:] = as_rst("\n".join(lines)).splitlines()


def skip_member(app, what, name, thing, skip, options):
    """A room leaves out what it takes from another room that has a page; the first page may name anything."""
    page, written = app.env.docname.rpartition("/")[2], getattr(thing, "__module__", None) or ""
    home = ".".join(written.split(".")[:2])
    return skip or (page not in ("zhat", home) and (HERE / "api" / f"{home}.rst").exists())


def setup(app):
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", process_docstring, priority=400)  # before napoleon
