import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zhat.equivalence import AFFINE, LINEAR, ORTHOGONAL, Equivalence
from zhat.errors import BadInput
from zhat.results import Answer, Curve, Picture, Prediction, Profile, Record, Score, from_json, to_json

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
