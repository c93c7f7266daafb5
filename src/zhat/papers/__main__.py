"""`python -m zhat.papers` writes `names.json`: how tables, figures, rows and budgets of all papers are called."""

from __future__ import annotations

import json
from pathlib import Path

from zhat import papers
from zhat._files import write_whole

if __name__ == "__main__":
    known = {name: papers.gathered(papers.paper(name)) for name in papers.names()}
    print(write_whole(Path(papers.__file__).parent / "names.json", json.dumps(known, ensure_ascii=False) + "\n"))
