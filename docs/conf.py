"""Sphinx settings; the API pages are written from the docstrings, which are Markdown with TeX."""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "src"))

from zhat import __version__  # noqa: E402

project = "zhat"
author = "The zhat developers"
copyright = "2026, The zhat developers"
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "zhat"
exclude_patterns = ["_build"]
suppress_warnings = ["myst.header"]

ROOMS = {
    "zhat": "The package",
    "zhat.dgp": "The world",
    "zhat.datasets": "Recorded data",
    "zhat.scenes": "Rendered worlds",
    "zhat.encoders": "Encoders",
    "zhat.objectives": "Objectives",
    "zhat.kernels": "Kernels",
    "zhat.training": "Training",
    "zhat.metrics": "Metrics",
    "zhat.theory": "Theory",
    "zhat.experiment": "Experiments",
    "zhat.audit": "Audit",
    "zhat.papers": "Papers",
    "zhat.runs": "Runs",
    "zhat.results": "Results",
    "zhat.report": "Reports",
    "zhat.testing": "Contracts",
}


def markdown(docstring):
    """A Google-style docstring as Markdown: sections become definition-like lists, examples become code."""
    out, section = [], ""
    for line in inspect.cleandoc(docstring).splitlines():
        title = re.fullmatch(r"(Args|Attributes|Returns|Raises|Example|Yields):", line)
        if title:
            section = title.group(1)
            out += ["", f"**{section}**", ""]
            if section == "Example":
                out.append("```python")
        elif section == "Example" and line and not line.startswith("    "):
            out += ["```", "", line]
            section = ""
        elif section in ("Args", "Attributes", "Raises") and re.match(r"    \w[\w, ]*: ", line):
            name, text = line.strip().split(": ", 1)
            out.append(f"- `{name}`: {text}")
        elif section in ("Args", "Attributes", "Raises") and line.startswith("        "):
            out.append("  " + line.strip())
        elif section == "Example":
            out.append(line[4:])
        elif section and line and not line.startswith("    "):
            section = ""
            out += ["", line]
        else:
            out.append(line.strip() if section else line)
    if section == "Example":
        out.append("```")
    return "\n".join(out)


def describe(name, thing, level):
    lines = [f"{'#' * level} {name}", ""]
    if inspect.isclass(thing) or inspect.isfunction(thing):
        try:
            signature = str(inspect.signature(thing)).replace("zhat.", "")
        except ValueError:
            signature = "(…)"
        lines += ["```python", re.sub(r" at 0x[0-9a-f]+", "", f"{name}{signature}"), "```", ""]
    if thing.__doc__ and (inspect.isclass(thing) or inspect.isfunction(thing)):
        lines += [markdown(thing.__doc__), ""]
    if inspect.isclass(thing):
        for member, value in vars(thing).items():
            function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            if not member.startswith("_") and inspect.isfunction(function) and function.__doc__:
                kind = "" if isinstance(value, property) else "()"
                lines += [f"`.{member}{kind}`: {inspect.cleandoc(function.__doc__).splitlines()[0]}", ""]
    return lines


def write_api(app=None):
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    for module_name, title in ROOMS.items():
        module = import_module(module_name)
        public = [n for n in getattr(module, "__all__", vars(module)) if not n.startswith("_")]
        lines = [f"# {title}: `{module_name}`", "", markdown(module.__doc__), ""]
        for name in public:
            thing = getattr(module, name)
            own = getattr(thing, "__module__", "").startswith("zhat")
            if hasattr(module, "__all__") or (own and thing.__module__ == module_name):
                if inspect.ismodule(thing) or not (inspect.isclass(thing) or inspect.isfunction(thing)):
                    continue
                lines += describe(name, thing, 2)
        page, text = folder / f"{module_name}.md", "\n".join(lines)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_api)
