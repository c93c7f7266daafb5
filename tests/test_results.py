import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zhat.equivalence import AFFINE, LINEAR, ORTHOGONAL, Equivalence
from zhat.errors import BadInput
from zhat.results import Answer, Curve, Picture, Prediction, Profile, Record, Score, from_json, to_json
from zhat.results.papers import Agreement, Axis, Measured, WordMap

number = st.floats(allow_nan=False, allow_infinity=False, width=32)


def score(value=0.9, up_to=AFFINE):
    return Score("R2", value, up_to, True, 0.8, 0.95, 0.0, 0.01, 100, 100, True, (0.9, 0.9))


def prediction(*holds, up_to=ORTHOGONAL):
    answers = tuple(Answer(f"condition {i}", h, "because") for i, h in enumerate(holds))
    return Prediction("Theorem 2", "zimmermann2021", up_to, False, 1.0, answers)


def record():
    picture = Picture(((0.0, 1.0),), ((0.1, 0.9),), AFFINE, ((1.0, 0.0), (0.0, 1.0)), (1.0, 0.9))
    profile = Profile((score(), score(0.7, LINEAR)))
    about = {"process": "Pairs(…)", "note": "ẑ"}
    return Record(
        name="a run",
        seed=3,
        settings=about,
        provenance={"torch": "2.13"},
        seconds=1.5,
        curve=Curve((1,), (2.0,)),
        stack=(3,),
        prediction=prediction("yes"),
        raw=profile,
        learned=profile,
        picture=picture,
    )


@given(
    st.builds(
        Score,
        st.text(),
        number,
        st.sampled_from(Equivalence),
        st.booleans(),
        number,
        number,
        number,
        number,
        st.integers(1, 10**6),
        st.integers(1, 10**6),
        st.booleans(),
        st.lists(number, min_size=1).map(tuple),
    )
)
def test_a_score_survives_json(one):
    assert from_json(to_json(one)) == one


def test_a_record_survives_json():
    assert from_json(to_json(record())) == record()
    assert from_json(to_json((record(), record()))) == (record(), record())


def test_a_result_never_holds_nan():
    with pytest.raises(BadInput, match="a failed computation has no score"):
        to_json(score(math.nan))


@pytest.mark.parametrize("text", ["", "{", '{"kind": "Score"}', '{"kind": "Equivalence", "name": "WRONG"}'])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(BadInput, match="not a result written by zhat"):
        from_json(text)


def test_a_profile_gives_the_score_of_a_class_or_says_what_it_has():
    profile = Profile((score(), score(0.7, LINEAR)))
    assert profile[LINEAR].value == 0.7
    assert [s.up_to for s in profile] == [AFFINE, LINEAR]
    with pytest.raises(BadInput, match="holds no score up to ORTHOGONAL; it holds AFFINE, LINEAR"):
        profile[ORTHOGONAL]


def test_a_prediction_is_as_strong_as_its_weakest_condition():
    assert prediction("yes", "yes").holds == "yes"
    assert prediction("yes", "unknown").holds == "unknown"
    assert prediction("unknown", "no").holds == "no"
    assert prediction(up_to=None).holds == "no"
    assert "every condition holds" in prediction("yes").sentence
    assert "provided that: condition 1" in prediction("yes", "unknown").sentence
    assert "fails here: condition 0" in prediction("no", "unknown").sentence
    assert prediction(up_to=None).sentence.startswith("No theorem")


def test_scores_print_what_is_needed_to_believe_them():
    text = str(score())
    assert "0.9000 up to affine," in text
    assert "[0.8000, 0.9500]" in text
    assert "chance 0.0000" in text
    assert "100 held-out rows" in text
    assert "similarity and a shift" in str(score(up_to=Equivalence.SIMILARITY))
    assert str(Profile((score(),))).count("\n") == 1


def test_a_mapping_may_have_the_key_that_names_kinds():
    assert from_json(to_json({"kind": (1.0, 2.0)})) == {"kind": (1.0, 2.0)}


DAMAGE = [
    (lambda kept: kept.update(value="0.9"), "value of Score must be float, but '0.9' came"),
    (lambda kept: kept.update(value=None), "value of Score must be float, but None came"),
    (lambda kept: kept.update(n=1.5), "n of Score must be int, but 1.5 came"),
    (lambda kept: kept.update(n=True), "n of Score must be int, but True came"),
    (lambda kept: kept.update(shift=1), "shift of Score must be bool, but 1 came"),
    (lambda kept: kept.update(up_to="AFFINE"), "up_to of Score must be Equivalence, but 'AFFINE' came"),
    (lambda kept: kept.update(per_latent=[0.9, [1]]), "per_latent of Score must be tuple.float, ....."),
    (lambda kept: kept.update(low=10**400), "low of Score must be float . None"),
    (lambda kept: kept.update(more=1), "Score has no field 'more'"),
    (lambda kept: kept.pop("name"), "missing 1 required positional argument: 'name'"),
]


@pytest.mark.parametrize(("change", "sentence"), DAMAGE)
def test_every_field_is_compared_with_its_annotation(change, sentence):
    kept = json.loads(to_json(score()))
    change(kept)
    with pytest.raises(BadInput, match=f"this is not a result written by zhat: .*{sentence}"):
        from_json(json.dumps(kept))


@pytest.mark.parametrize("text", ["[NaN]", "[1e999]", "[-Infinity]", '["\\ud800"]', "[" * 100_000, "9" * 5000])
def test_numbers_that_are_none_and_text_that_is_none_are_refused(text):
    with pytest.raises(BadInput, match="this is not a result written by zhat"):
        from_json(text)


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: Curve((1, 2), (0.5,)), "one value for each step"),
        (lambda: replace(record().picture, z_hat=((0.1, 0.9), (0.1, 0.9))), "as many rows of latents as of estimates"),
        (lambda: replace(record().picture, z=((0.1,),)), "rows of one length"),
        (lambda: Measured(None, (), (1.0,)), "the score of at least one seed"),
        (lambda: Measured(None, (1.0,), (1.0,), digits=-1), "0 to 12 digits"),
        (lambda: Axis("x", (1.0, 2.0), 1.0, "m", (1.0,), "s"), "as many second quantities as points"),
        (lambda: Agreement("g", "n", (), (), 0.0, (), 3), "one value for each pair of models"),
        (lambda: WordMap("t", ("a",), (), (), ()), "a place in the plane for each word"),
    ],
)
def test_what_a_result_says_twice_must_agree(made, sentence):
    with pytest.raises(BadInput, match=sentence):
        made()


def test_controls_of_a_terminal_are_escaped_in_json():
    text = to_json({"a\x1b": "\x9b\x7f"})
    assert not {"\x1b", "\x9b", "\x7f"} & set(text)
    assert from_json(text) == {"a\x1b": "\x9b\x7f"}
