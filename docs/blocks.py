"""The blocks of our pages that hold measured results, written from results/: python docs/blocks.py [--check]."""

import json
import re
import sys
from pathlib import Path

from zhat.report.comparison import summary
from zhat.results import from_json

ROOT = Path(__file__).parent.parent


def demo():
    text = (ROOT / "results" / "demo.txt").read_text(encoding="utf-8")
    return "```text\n" + "\n".join(line.rstrip() for line in text.strip().splitlines()) + "\n```"


def benchmarks():
    data = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    steps, draws, scores = data["training_step"], data["vmf_sampling"], data["scores"]
    rows = ["| what | against | how much faster | command |", "|---|---|---|---|"]
    for name, case in steps.items():
        rows.append(
            f"| contrastive loss and its gradient, {name}, B = 6144, d = 10 | all pairwise differences held at once | "
            f"{case['loss_ratio']:.1f}×, with {case['ours']['loss_bytes'] / 1e6:.0f} MB instead of "
            f"{case['plain']['loss_bytes'] / 1e6:,.0f} MB | `python -m benchmarks.training_step` |"
        )
    low, high = (f(case["ratio"] for case in draws.values()) for f in (min, max))
    rows.append(
        "| a million von Mises-Fisher draws, d = 10 | vectorised NumPy rejection sampler | "
        f"{low:.1f}× to {high:.1f}× | `python -m benchmarks.vmf_sampling` |"
    )
    for name, case in scores.items():
        plain = "scikit-learn" if name.startswith("R2") else "NumPy"
        rows.append(
            f"| {name}, 100,000 rows, in sample | {plain} | {case['ratio']:.1f}× | `python -m benchmarks.scores` |"
        )
    return "\n".join(rows) + f"\n\nMeasured on {data['machine']}."


def compared(part, budget="fast"):
    path = ROOT / "results" / "zimmermann2021" / part / budget / "results.json"
    if not path.exists():
        return "Not measured yet."
    result = from_json(path.read_text(encoding="utf-8"))
    rows = ["| row | setting | published | ours | held out | verdict |", "|---|---|---|---|---|---|"]
    for row in result.rows:
        held_out = sum(row.learned.held_out) / len(row.learned.held_out)
        setting = row.title.replace("|", r"\|")
        rows.append(
            f"| {row.name} | {setting} | {row.learned.published} | {row.learned} | {held_out:.2f} | "
            f"{row.learned.verdict} |"
        )
    about = result.provenance
    return "\n".join(
        [
            *rows,
            "",
            f"{summary(result)} {len(result.rows[0].seeds)} seeds, budget {budget}, "
            f"training took {result.seconds:.0f} s on {about['device']}, torch {about['torch']}, "
            f"commit {about['commit']}. Command: `{about['command']}`.",
        ]
    )


def differences():
    data = json.loads((ROOT / "results" / "zimmermann2021" / "differences.json").read_text(encoding="utf-8"))
    pair, layers, rows = data["self-pair"], data["conditioning"], data["evaluation"]
    best = layers["best of 25,000"]

    def mean(values):
        return sum(values) / len(values)

    def ends(values, how=""):
        return f"{min(values):{how}} to {max(values):{how}}"

    def both(name, digits):
        return " and ".join(f"{mean(pair[key][name]):.{digits}f}" for key in ("with", "without"))

    return "\n".join(
        [
            "| difference | measured effect |",
            "|---|---|",
            "| the anchor among its own negatives (we keep it, as the code has it; the formula has none) | "
            f"with and without: R2 {both('R2', 2)}, MCC {both('MCC', 2)}, standard deviation of a coordinate "
            f"{both('standard deviation of a coordinate', 2)} |",
            "| mixing layers: best of 25,000 instead of redrawn until as good as the best of one set | "
            f"condition numbers {ends(best, '.2f')} against {ends(layers['redrawn'], '.2f')}; redrawing took "
            f"{ends(layers['sets of 25,000 drawn'])} sets, and more than a million draws for "
            f"{layers['gave up after a million']} of {len(best)} layers |",
            "| scores read on other rows instead of those of the fit | in sample minus held out: "
            + "; ".join(
                f"{gap['R2']:+.2f} points of R2 and {gap['MCC']:+.2f} of MCC with {n} rows" for n, gap in rows.items()
            )
            + " |",
        ]
    )


def real_pairs():
    data = json.loads((ROOT / "results" / "audit" / "real_pairs.json").read_text(encoding="utf-8"))
    rows = ["| pair | rows | dimensions | expected | verdict | R2 |", "|---|---|---|---|---|---|"]
    for pair in data["pairs"]:
        score = "" if pair["r2"] is None else f"{pair['r2']:.3f}"
        verdict = pair["verdict"] if pair["as_expected"] else f"**{pair['verdict']}**"
        rows.append(
            f"| {pair['pair']} | {pair['rows']:,} | {' → '.join(str(d) for d in pair['dims'])} | "
            f"{' or '.join(pair['expected'])} | {verdict} | {score} |"
        )
    kept = sum(pair["as_expected"] for pair in data["pairs"])
    return "\n".join(
        [*rows, "", f"{kept} of {len(data['pairs'])} as expected; others in bold. Command: `{data['command']}`."]
    )


def recipes(group):
    data = json.loads((ROOT / "results" / "recipes.json").read_text(encoding="utf-8"))[group]
    names = list(next(iter(data["found"].values())))
    rows = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    rows += [f"| {name} | {' | '.join(str(found[n]) for n in names)} |" for name, found in data["found"].items()]
    return "\n".join(
        [*rows, "", f"One seed each, {data['seconds']} s on {data['machine']}. Command: `{data['command']}`."]
    )


PAGES = {
    "docs/audit.md": {"real-pairs": real_pairs},
    "README.md": {"demo": demo, "benchmarks": benchmarks},
    "docs/zimmermann2021.md": {
        "table-1": lambda: compared("table-1"),
        "table-2": lambda: compared("table-2"),
        "differences": differences,
        "tight": lambda: recipes("tight"),
    },
    "docs/reizinger2024.md": {"hard": lambda: recipes("hard")},
}


def filled(page, blocks):
    for name, make in blocks.items():
        pattern = rf"(<!-- {name}: [^\n]*-->\n).*?(\n<!-- end -->)"
        assert re.search(pattern, page, re.S), f"there is no block {name}"
        page = re.sub(pattern, lambda m, make=make: m[1] + make() + m[2], page, flags=re.S)
    return page


if __name__ == "__main__":
    for name, blocks in PAGES.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        after = filled(before, blocks)
        if "--check" in sys.argv and before != after:
            sys.exit(f"{name} differs from results/; run: python docs/blocks.py")
        path.write_text(after, encoding="utf-8")
