"""Help reads well at 80 columns, in a terminal and in a file."""

import itertools
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from zhat import cli

COMMANDS = [command.name or command.callback.__name__ for command in cli.app.registered_commands]


def helped(*words):
    shown = CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"}, prog_name="zhat")
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_fits_80_columns_and_fills_them(command):
    text = helped(*filter(None, [command]))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert "..." not in text.replace("[ARGS]...", "")  # nothing is cut
    for paragraph in re.split(r"\n *\n", text.partition("\n\n")[2].partition("Options:")[0]):
        filled = paragraph.splitlines()
        if "  " in paragraph.strip().replace("\n  ", "\n"):
            continue  # names with what they mean
        for line, after in itertools.pairwise(filled):
            assert len(line) + len(after.split()[0]) + 1 > 78, f"{line!r} breaks before its end"


def test_help_shows_brackets_whole_options_and_what_they_take():
    text = helped("reproduce")
    said = " ".join(text.split())
    assert said.startswith("Usage: zhat reproduce [OPTIONS] PAPER ")
    assert "(needs zhat[dask])" in said
    assert "--no-resume trains the chosen rows again" in said  # not broken after a hyphen
    assert "\n  --seeds SEEDS " in text
    assert "[A B [C …]]" in helped("audit")
    assert re.search(r"\n  -o, --out OUT|\n  --out, -o OUT", helped("adapt"))
    assert "<" not in text


def test_every_summary_of_a_command_is_whole():
    said = " ".join(helped().split())
    for command in cli.app.registered_commands:
        first = " ".join(command.callback.__doc__.split("\n\n")[0].split())
        assert first in said


def test_an_interruption_while_the_program_loads_gets_a_sentence():
    loads = "import sys, zhat.__main__ as entry\n" + (
        "class Interrupts:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "entry.main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", loads], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "zhat: interrupted\n")
