"""Runs of pairs of models: scored against each other instead of against latents."""

from dataclasses import dataclass, replace

import pytest
import torch

import zhat
from zhat.dgp import Batch, Sectors
from zhat.encoders import Pair, Towers, mlp
from zhat.equivalence import AFFINE, LINEAR
from zhat.errors import BadInput, TooFewRows
from zhat.experiment import (
    Alike,
    Along,
    Budget,
    Chance,
    FirstComponents,
    LeastAlike,
    LinearR2,
    Part,
    Reading,
    Row,
    Trained,
    Twin,
    TwoRoads,
    reproduce,
    run,
)
from zhat.fresh import Fresh
from zhat.metrics import CCA
from zhat.objectives import CrossEntropy, Each, InBatchSoftmax
from zhat.report import render
from zhat.report.comparison import markdown, page
from zhat.results import from_json, to_json
from zhat.training import Constant, Recipe

SHORT = Budget("short", Recipe(20, 64, 1e-2, Constant()), seeds=2, batches=1, rows=256, profile_rows=256)
ROW = Row(
    name="pairs",
    title="pairs of classifiers",
    process=Sectors(5, harmonics=1),
    encoder=Fresh(Pair, Fresh(mlp, 2, 2, widths=(8,))),
    objective=Fresh(Each, Fresh(CrossEntropy, 2, 5)),
    budgets=(SHORT,),
    against=Twin(),
    readings=(
        Reading("chance", Chance()),
        Reading("least", LeastAlike()),
        Reading("SVCCA", FirstComponents(1)),
        Reading("R2 of 1", LinearR2(of=1)),
        Reading("R2 of 2", LinearR2(of=2)),
        Reading("roads", TwoRoads(), in_percent=False),
    ),
)


@dataclass(frozen=True)
class Recorded:
    """Two views of rows without latents, some of them kept from training."""

    kept: bool = False
    seed: int = 0
    views: int = 2

    @property
    def held_out(self):
        return replace(self, kept=True)

    def sample(self, n, *, generator):
        x = torch.randn(2, n, 3, generator=generator)
        return Batch(x=x + 100 if self.kept else x)


RECORDED = replace(
    ROW,
    process=Recorded(),
    encoder=Fresh(Pair, Fresh(Towers, Fresh(mlp, 3, 2, widths=(8,)))),
    objective=Fresh(Each, InBatchSoftmax()),
    readings=(Reading("g", Alike(view=1)),),
)


def claim(x, scores):
    return scores[0] > 0, f"it begins at {scores[0]:.0f}%"


def figure(row, second):
    return Part(
        paper="roeder2020",
        label="Figure 9",
        caption="a figure for tests",
        measure=CCA(),
        score="mean CCA",
        rows=(row,),
        judge=Along(
            x=(1.0,),
            name="x",
            mark=1.5,
            mark_name="middle",
            second=second,
            second_name="what the second axis shows",
            claim=claim,
        ),
    )


@pytest.fixture(scope="module")
def classifiers(tmp_path_factory):
    """The result of a figure of two pairs of classifiers, and where their runs are."""
    home = tmp_path_factory.mktemp("classifiers")
    (result,) = reproduce(figure(ROW, lambda row: 0.5), budget="short", out=home)
    return result, tuple(zhat.runs.scan(home))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The same of one pair with two towers, on rows without latents."""
    home = tmp_path_factory.mktemp("recorded")
    (result,) = reproduce(figure(RECORDED, "g"), budget="short", seeds=1, out=home)
    return result, tuple(zhat.runs.scan(home))


def test_a_record_of_a_pair_compares_its_models(classifiers):
    first, second = (zhat.runs.read(folder) for folder in classifiers[1])
    assert first.raw is None
    assert first.learned[AFFINE].n == 128
    assert (first.by_paper.name, first.by_paper.n, first.by_paper.held_out) == ("mean CCA", 256, False)
    assert 0 < first.by_paper.chance < 0.3
    assert first.held_out.held_out is True
    assert first.curve.watched_name == "mean CCA"
    assert first.curve.watched[-1] == pytest.approx(first.by_paper.value, abs=0.1)  # on other rows
    assert len(first.picture.z[0]) == 2
    assert (first.prediction.cite, first.prediction.up_to) == ("roeder2020", LINEAR)
    least, score = first.readings["least"][0], first.by_paper
    assert least == pytest.approx(min(score.per_latent))
    assert first.readings["chance"][0] == score.chance
    assert first.readings["R2 of 1"] != first.readings["R2 of 2"]
    assert first.readings["roads"][0] > 0
    assert first.by_paper != second.by_paper


def test_the_score_of_a_pair_is_that_of_its_members_on_rows_of_its_world(classifiers):
    folder = classifiers[1][0]
    pair = ROW.encoder()
    pair.load_state_dict(zhat.runs.weights(folder))
    x = ROW.process.sample(256, generator=zhat.randomness.generator(100, "score")).x[0]
    one, two = (member(x).detach() for member in pair.members)
    assert CCA()(one, two).value == pytest.approx(zhat.runs.read(folder).by_paper.value, abs=1e-6)


def test_a_pair_alone_is_the_pair_in_a_stack(classifiers, tmp_path):
    (alone,) = run(ROW, SHORT, seeds=(1,), out=tmp_path, measure=CCA())
    assert alone.by_paper.value == pytest.approx(zhat.runs.read(classifiers[1][1]).by_paper.value, abs=1e-3)


def test_rows_without_latents_are_scored_on_what_was_kept_from_training(recorded):
    (folder,) = recorded[1]
    pair, record = RECORDED.encoder(), zhat.runs.read(folder)
    pair.load_state_dict(zhat.runs.weights(folder))
    x = Recorded(kept=True).sample(256, generator=zhat.randomness.generator(100, "score")).x
    for view, value in ((0, record.by_paper.value), (1, record.readings["g"][0])):
        one, two = (network(x[view]).detach() for network in pair.of_view(view))
        assert CCA()(one, two).value == pytest.approx(value, abs=1e-6)


def test_a_figure_of_pairs_shows_their_agreement_and_an_aligned_coordinate(classifiers):
    result, _ = classifiers
    assert result.judgement.holds is True
    assert len(result.rows[0].aligned) == 128
    assert len(result.rows[0].aligned[0]) == 2
    assert from_json(to_json(result)) == result
    assert "least" in markdown(result)
    html = page(result)
    assert "Mean CCA while training." in html
    assert "First coordinate of the truth against its estimate" in html


def test_a_reading_may_be_the_second_curve_and_has_to_meet_the_claim_as_well(recorded):
    result, _ = recorded
    assert result.judgement.axis.second == (result.rows[0].readings["g"].mean / 100,)
    assert result.judgement.claim.startswith("mean CCA: it begins at ")
    assert "; what the second axis shows: it begins at " in result.judgement.claim


def test_the_page_of_a_pair_speaks_of_two_models(classifiers):
    html = render([zhat.runs.read(folder) for folder in classifiers[1]])
    assert "Are two models of the same world the same" in html
    assert "The first model's features and what came back (seed 0)" in html.replace("&#39;", "'")
    assert "raw observations" not in html


def test_too_few_rows_are_refused_before_training(tmp_path):
    with pytest.raises(TooFewRows, match="30 rows cannot tell how alike two models of 2 dimensions are. .* 40 rows"):
        run(ROW, replace(SHORT, rows=30), seeds=(0,), out=tmp_path, measure=CCA())


def test_mistakes_get_a_sentence(tmp_path):
    alone = replace(ROW, encoder=Fresh(mlp, 2, 2, widths=(8,)), objective=Fresh(CrossEntropy, 2, 5), readings=())
    with pytest.raises(BadInput, match="two models are compared, but Sequential is no Pair"):
        run(alone, SHORT, seeds=(0,), out=tmp_path, measure=CCA())
    trained = Trained(mlp(2, 2, widths=(8,)), None, Sectors(5), 100, "cpu")
    with pytest.raises(BadInput, match="two models are compared, but Sequential is no Pair"):
        LinearR2(of=1)(trained)
    few = Fresh(Each, Fresh(CrossEntropy, 2, 2))()
    with pytest.raises(BadInput, match="no set of labels has an invertible L in both heads"):
        TwoRoads()(replace(trained, encoder=Pair(Fresh(mlp, 2, 2, widths=(8,))), objective=few))
