import pickle

import numpy as np
import pytest
import torch

from zhat.datasets import Arrays, Augmented, GivenPairs, NextRow, SameLabel
from zhat.errors import BadInput, TooFewRows

X = torch.arange(12.0)[:, None] * torch.tensor([1.0, 10.0])
LABEL = np.array(list("aaabbbbcccde"))


def noisy(rows, generator):
    return rows + torch.rand(rows.shape, generator=generator, device=rows.device)


EVERY = {
    "Arrays": lambda: Arrays(X),
    "labelled": lambda: Arrays(X, LABEL),
    "NextRow": lambda: NextRow(X),
    "SameLabel": lambda: SameLabel(X, LABEL),
    "GivenPairs": lambda: GivenPairs(X, X + 1),
    "Augmented": lambda: Augmented(X, noisy),
}


def drawn(process, n=200, seed=0):
    return process.sample(n, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", EVERY)
def test_a_process_keeps_its_contract(name):
    process = EVERY[name]()
    state = torch.random.get_rng_state()
    batch = drawn(process)
    assert batch.x.shape == (process.views, 200, 2)
    assert batch.x.dtype == torch.float32
    assert batch.z is None
    assert batch.label.min() >= 0
    assert batch.label.max() < process.labels
    assert torch.equal(drawn(process).x, batch.x)
    assert not torch.equal(drawn(process, seed=1).x, batch.x)
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("name", EVERY)
def test_equal_rows_are_equal_processes_that_print_short_and_pickle(name):
    first, second = EVERY[name](), EVERY[name]()
    assert first == second
    assert hash(first) == hash(second)
    assert len(repr(first)) < 90
    assert torch.equal(drawn(pickle.loads(pickle.dumps(first))).x, drawn(first).x)
    if name != "GivenPairs":
        assert first != GivenPairs(X, X + 1)


def test_a_labelled_row_keeps_its_label():
    batch = drawn(Arrays(X, LABEL))
    wanted = np.unique(LABEL, return_inverse=True)[1][batch.x[0, :, 0].long().numpy()]
    assert batch.label.tolist() == wanted.tolist()


def test_the_next_row_follows_and_never_crosses_into_another_series():
    batch = drawn(NextRow(X, lag=2))
    assert (batch.x[1] - batch.x[0]).unique(dim=0).tolist() == [[2.0, 20.0]]
    assert set(drawn(NextRow(X)).x[0, :, 0].tolist()) == set(range(11))
    series = np.repeat([7, 8, 9], 4)
    anchors = set(drawn(NextRow(X, series=series)).x[0, :, 0].tolist())
    assert anchors == {0, 1, 2, 4, 5, 6, 8, 9, 10}


def test_the_same_label_gives_every_other_row_alike_and_never_the_row_itself():
    batch = drawn(SameLabel(X, LABEL), n=6000)
    one, other = batch.x[:, :, 0].long().numpy()
    assert (LABEL[one] == LABEL[other]).all()
    assert (one != other).all()
    assert set(LABEL[one]) == {"a", "b", "c"}  # d and e have one row each
    for row in range(3, 7):
        counts = np.bincount(other[one == row], minlength=12)[3:7]
        expected = counts.sum() / 3
        assert counts[row - 3] == 0
        assert (np.abs(np.delete(counts, row - 3) - expected) < 5 * np.sqrt(expected)).all()


def test_given_positives_stay_with_their_rows():
    batch = drawn(GivenPairs(X, -X))
    assert torch.equal(batch.x[1], -batch.x[0])


def test_augmented_copies_differ_and_belong_to_one_row():
    batch = drawn(Augmented(X, noisy))
    assert not torch.equal(batch.x[0], batch.x[1])
    assert torch.equal(batch.x[0, :, 0].floor(), batch.x[1, :, 0].floor())
    assert torch.equal(batch.x[0, :, 0].floor().long(), batch.label)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Arrays(X[:1]), "`x` must have at least 2 rows, but 1 came"),
        (lambda: NextRow(X[:3], lag=3), "`x` must have at least 4 rows"),
        (lambda: NextRow(X, series=np.arange(12)), "no row of `x` has a row of the same series 1 places later"),
        (lambda: SameLabel(X, np.arange(12)), "no two rows of `x` have the same label"),
        (lambda: SameLabel(X, LABEL[:5]), "one label for each of 12 rows"),
        (lambda: GivenPairs(X, X[:5]), "every row of `x` needs one positive"),
        (lambda: Augmented(X, "crop"), "`augment` must be callable"),
        (lambda: drawn(Augmented(X, lambda rows, generator: rows[:3])), "`augment` must return rows for rows"),
        (lambda: Arrays(X, seed="x"), "`seed` is an integer"),
        (lambda: drawn(Arrays(X), n=0), "`n` must be a whole number"),
    ],
)
def test_mistakes_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(TooFewRows) as error:
        NextRow(X[:2], lag=4)
    assert error.value.needed == 5


def test_data_frames_are_rows():
    pd = pytest.importorskip("pandas")
    frame, label = pd.DataFrame(X.numpy(), columns=["a", "b"]), pd.Series(LABEL)
    assert Arrays(frame, label) == Arrays(X, LABEL)
    assert NextRow(frame, series=label) == NextRow(X, series=LABEL)
    assert SameLabel(frame, label, z=frame) == SameLabel(X, LABEL, z=X)
    assert GivenPairs(frame, frame + 1) == GivenPairs(X, X + 1)
    assert Augmented(frame, noisy) == Augmented(X, noisy)
    with pytest.raises(BadInput, match="must hold real numbers, but its dtype is object"):
        Arrays(pd.DataFrame({"a": ["x", "y"]}, dtype=object))
