from dataclasses import replace

from zhat.report.comparison import latex, markdown, page, summary
from zhat.report.families import cells, plots
from zhat.results import Agreement, Curve, FamilyResult, ModelRecord, WordMap

MODELS = tuple(ModelRecord(f"m{i}", "a model", i, {}, {}, 2.0, Curve((1, 2), (3.0, 2.0)), 2.5) for i in (0, 1))
NAMES = ("last", *(f"last - {i}" for i in range(1, 9)))
RHO = (1.0, 0.9, 0.8, 0.7)
LAYERS = tuple(
    Agreement("4 components", name, (("m0", "m1"),), (0.9 - i / 20,), 0.1, RHO, 500) for i, name in enumerate(NAMES)
)
RESULT = FamilyResult(
    paper="roeder2020",
    label="Figure 4",
    caption="a figure for tests",
    score="SVCCA",
    budget="fast",
    rows=MODELS,
    expected=2,
    agreements=LAYERS,
    words=(),
    holds=True,
    claim="the last layer agrees best",
    seconds=4.0,
    settings={"m": {"encoder": "GPT"}},
    provenance={"torch": "2"},
    notes=("a note",),
)


def test_the_table_has_a_column_only_where_there_is_something_to_say():
    header, rows = cells(RESULT)
    assert header == ["models", "what", "SVCCA", "chance", "rows compared"]
    assert rows[0] == ["4 components", "last", "0.9000", "0.1000", "500"]
    pairs = (("m0", "m1"), ("m0", "m2"))
    fuller = tuple(
        replace(a, pairs=pairs, values=(0.9, 0.7), untrained=0.3, by_paper=0.8, published=0.85) for a in LAYERS
    )
    header, rows = cells(replace(RESULT, agreements=fuller))
    assert rows[0][2:4] == ["0.8000 ± 0.1414", "0.7000 to 0.9000"]
    assert dict(zip(header, rows[0], strict=True))["before training"] == "0.3000"
    assert dict(zip(header, rows[0], strict=True))["published"] == "0.85"
    assert any("Dotted: before training" in caption for _, caption in plots(replace(RESULT, agreements=fuller)))


def test_distances_between_probabilities_have_a_column_and_a_plot_where_pairs_are_many():
    pairs = (("m0", "m1"), ("m0", "m2"), ("m1", "m2"))
    every = Agreement("words", "g(y)", pairs, (0.9, 0.5, 0.4), 0.1, (0.7, 0.5), 500, apart=(0.01, 0.0, 2.0))
    lowest = Agreement("words", "g(y), two", pairs[:1], (0.9,), 0.1, (0.9, 0.9), 500, apart=(0.01,))
    result = replace(RESULT, agreements=(every, lowest))
    header, rows = cells(result)
    assert [dict(zip(header, row, strict=True))["nats apart"] for row in rows] == ["0.0000 to 2.0000", "0.0100"]
    assert [dict(zip(header, row, strict=True))["lowest and highest pair"] for row in rows] == ["0.4000 to 0.9000", "–"]
    ((chart, caption),) = plots(result)
    assert chart.count('class="learned"') == 4  # three pairs, and one in the legend
    assert "words, all 3 pairs" in caption
    assert "symmetrised divergence" in page(result)
    assert "symmetrised divergence" not in page(RESULT)


def test_of_many_layers_every_fourth_has_a_curve_and_all_have_a_mean():
    (curves, _), (means, caption) = plots(RESULT)
    assert curves.count("<polyline") == 3
    assert means.count("<polyline") == 1
    assert "every layer" in caption


def test_the_pages_say_what_was_found():
    assert summary(RESULT) == "By our rule the paper's claim holds: the last layer agrees best."
    html = page(RESULT)
    for words in ("roeder2020, Figure 4", "a note", "2.5000", "last - 8", "Settings of m"):
        assert words in html
    assert "| 4 components | last - 8 | 0.5000 |" in markdown(RESULT)
    assert r"\begin{tabular}{lllll}" in latex(RESULT)


def test_a_result_without_models_or_comparison_has_a_page():
    early = replace(RESULT, rows=MODELS[:1], agreements=(), holds=None, claim="not all models are finished")
    assert "1 of 2 are not finished" in page(early)
    assert "The figure" not in page(early)


def test_words_are_drawn_before_and_after_the_map():
    drawn = WordMap("two models", ("sun", "sea"), ((0, 0), (1, 1)), ((0, 1), (1, 0)), ((0, 0), (1, 1)))
    found = plots(replace(RESULT, words=(drawn,), agreements=()))
    assert [caption for _, caption in found] == [
        "two models: 2 words, before the map. Dots: first model; rings: second model.",
        "two models: 2 words, after the map. Dots: first model; rings: second model.",
    ]
    assert "first model" in page(replace(RESULT, words=(drawn,)))
