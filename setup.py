"""The README as a package index shows it; everything else about the package is in pyproject.toml.

An index shows the README alone, without the files beside it. Where pyproject.toml names the address of the source
(`Source` under `[project.urls]`), pictures and links to files point there; where it names none, pictures are left out
and links become text.
"""

import re
import tomllib
from pathlib import Path

HERE = Path(__file__).parent


def page(readme: str, source: str | None) -> str:
    """The README without relative addresses.

    Args:
        readme: Markdown.
        source: address of the repository, or None where there is none yet.
    """
    prose = re.split(r"(```.*?```)", readme, flags=re.S)  # code is left as it is

    def pointed(text: str) -> str:
        if source is not None:
            text = re.sub(r"(!\[[^]]*\]\()(?!https?:|#)([^)]+\))", rf"\1{source}/raw/HEAD/\2", text)
            return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:|#)([^)]+\))", rf"\1{source}/blob/HEAD/\2", text)
        text = re.sub(r"^!\[[^]]*\]\((?!https?:)[^)]+\)\n(\n?)", "", text, flags=re.M)
        return re.sub(r"(?<!!)\[([^]]*)\]\((?!https?:|#)[^)]+\)", r"\1", text)

    return "".join(part if part.startswith("```") else pointed(part) for part in prose)


if __name__ == "__main__":
    from setuptools import setup

    about = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    setup(
        long_description=page((HERE / "README.md").read_text(encoding="utf-8"), about.get("urls", {}).get("Source")),
        long_description_content_type="text/markdown",
    )
