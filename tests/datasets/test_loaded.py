import itertools
import pickle

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, WeightedRandomSampler

import zhat
from zhat import testing
from zhat.datasets import Loaded, loaded
from zhat.encoders import mlp
from zhat.errors import BadInput, TooFewRows
from zhat.objectives import InfoNCE, NegativeLp

X = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
DIGIT = torch.arange(40) % 5


class Noisy(Dataset):
    """Two views by a transform that draws from torch's global state."""

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return X[i] + 0.1 * torch.randn(4), X[i] + 0.1 * torch.randn(4)


class Named(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return {"pixels": X[i], "digit": int(DIGIT[i]), "name": f"row {i}", "where": X[i, :2] * 2}


class Flowing(IterableDataset):
    def __iter__(self):
        return iter(zip(X, DIGIT.tolist(), strict=True))


EVERY = {
    "tensors": lambda: Loaded(TensorDataset(X)),
    "labelled": lambda: Loaded(TensorDataset(X, DIGIT)),
    "views": lambda: Loaded(Noisy()),
    "named": lambda: Loaded(Named(), {"pixels": "x", "digit": "label", "where": "z"}),
    "loader": lambda: Loaded(DataLoader(Noisy(), batch_size=8, shuffle=True)),
    "iterable": lambda: Loaded(DataLoader(Flowing(), batch_size=8)),
    "batches": lambda: Loaded([(X[:20], X[:20] + 1), (X[20:], X[20:] + 1)]),
    "generator": lambda: Loaded((X[i : i + 8] for i in itertools.count()), "x", most=30),
}


@pytest.mark.parametrize("name", EVERY)
def test_it_keeps_the_contract_of_a_process(name):
    testing.check_process(EVERY[name]())


@pytest.mark.parametrize("name", [n for n in EVERY if n != "generator"])
def test_equal_sources_are_equal_processes_that_print_short(name):
    first, second = EVERY[name](), EVERY[name]()
    assert first == second
    assert hash(first) == hash(second)
    assert len(repr(first)) < 130
    assert first != EVERY["tensors"]() or name == "tensors"


@pytest.mark.parametrize("name", ["tensors", "iterable", "batches", "generator"])
def test_it_pickles(name):
    world = EVERY[name]()
    again = pickle.loads(pickle.dumps(world))
    draw = [w.sample(9, generator=torch.Generator().manual_seed(2)).x for w in (world, again)]
    assert torch.equal(*draw)
    assert again == world


def test_rows_labels_and_latents_belong_together():
    batch = EVERY["named"]().sample(60, generator=torch.Generator().manual_seed(1))
    assert torch.equal(batch.z[0], 2 * batch.x[0][:, :2])
    place = (batch.x[0][:, None] == X).all(-1).int().argmax(1)
    assert torch.equal(batch.label, DIGIT[place])
    assert len(place.unique()) > 20


def test_an_iterable_is_drawn_from_memory_every_row_alike():
    world = EVERY["iterable"]()
    batch = world.sample(4000, generator=torch.Generator().manual_seed(1))
    assert world.labels == 5
    counts = torch.bincount((batch.x[0][:, None] == X).all(-1).int().argmax(1), minlength=40)
    assert (counts - 100).abs().max() < 5 * 100**0.5  # five standard deviations of a count


def test_many_rows_are_fetched_some_at_a_time(monkeypatch):
    whole = EVERY["tensors"]().sample(100, generator=torch.Generator().manual_seed(1)).x
    monkeypatch.setattr(loaded, "FETCHED", 7)
    assert torch.equal(EVERY["tensors"]().sample(100, generator=torch.Generator().manual_seed(1)).x, whole)


def test_it_trains_and_a_seed_alone_sees_what_it_sees_among_others():
    how = {"steps": 5, "batch": 16}
    world, objective = EVERY["views"](), InfoNCE(NegativeLp(2))
    both = zhat.train(zhat.Fresh(mlp, 4, 2, widths=(8,)), world, objective, seeds=(0, 1), **how)
    alone = zhat.train(zhat.Fresh(mlp, 4, 2, widths=(8,)), world, objective, seeds=(1,), **how)
    assert torch.allclose(both.encoders[1](X), alone.encoder(X), atol=1e-5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loaded(3), "must be a Dataset, a DataLoader or an iterable of batches, but a int came"),
        (lambda: Loaded(X), "An array of rows is a process as Arrays"),
        (lambda: Loaded([]), "at least 2 rows, but 0 came"),
        (lambda: Loaded(TensorDataset(X[:1])), "at least 2 items, but 1 came"),
        (lambda: Loaded(Named()), "the keys pixels, digit, name, where, and nothing says what each of them is"),
        (lambda: Loaded(TensorDataset(X, X[:, :2], DIGIT)), "an item has 3 parts, and nothing says"),
        (lambda: Loaded(TensorDataset(X, X[:, :2])), "an item has 2 parts, and nothing says"),
        (lambda: Loaded(TensorDataset(X), ("x", "z")), "an item has 1 parts, but `parts` names 2"),
        (lambda: Loaded(TensorDataset(X), ("pixels",)), "a part is 'x', 'label', 'z' or ''"),
        (lambda: Loaded(TensorDataset(X), ("z",)), "must name at least one 'x'"),
        (lambda: Loaded(Named(), {"image": "x"}), "names the keys image, but an item has pixels"),
        (lambda: Loaded(Named(), {"name": "x"}), "'x' must be numbers, but a list came"),
        (lambda: Loaded(TensorDataset(X, X[:, 0]), ("x", "label")), "a label must be a whole number"),
        (lambda: Loaded(TensorDataset(X, X[:, :2]), ("x", "x")), "two views must have one shape"),
        (lambda: Loaded(TensorDataset(X * torch.nan)), "observations must be finite"),
        (lambda: Loaded(TensorDataset(X[:, 0])), "a row of observations must be a tensor"),
        (lambda: Loaded(TensorDataset(X), most=3), "`most` limits what is kept of an iterable"),
        (lambda: Loaded([X, X[:, :2]]), "all batches must have rows of one shape"),
        (lambda: Loaded([(X, X[:3])], ("x", "z")), "the parts of a batch must have as many rows"),
        (
            lambda: Loaded(DataLoader(TensorDataset(X), sampler=WeightedRandomSampler(torch.ones(40), 40))),
            "draws rows by a WeightedRandomSampler, but a process draws every row alike",
        ),
        (lambda: Loaded([torch.ones(3), torch.ones(3)][i] for i in range(2)), "a row of observations must be"),
    ],
)
def test_what_cannot_be_a_process_gets_a_sentence(make, message):
    with pytest.raises((BadInput, TooFewRows), match=message):
        make()


def test_items_of_several_shapes_get_a_sentence():
    class Ragged(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return torch.zeros(i + 1)

    with pytest.raises(BadInput, match="items of Ragged cannot be stacked into a batch"):
        Loaded(Ragged())


def test_an_iterable_that_does_not_end_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(loaded, "BYTES", 2**12)
    with pytest.raises(BadInput, match="has not ended. Say how many rows to keep with most"):
        Loaded(X for _ in itertools.count())


@pytest.mark.parametrize("bare", [TensorDataset(X), DataLoader(TensorDataset(X)), X, [X, X]])
def test_training_and_scoring_name_what_makes_a_process(bare):
    with pytest.raises(BadInput, match="becomes one as zhat.datasets.Loaded"):
        zhat.train(mlp(4, 2, seed=0), bare, InfoNCE(), steps=1)
    if not isinstance(bare, list):
        with pytest.raises(BadInput, match="`world` must be a process"):
            zhat.score(mlp(4, 2, seed=0), bare)
