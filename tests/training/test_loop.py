import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import zhat
from zhat.dgp import Batch, InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.errors import BadInput, Diverged
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE, Supervised
from zhat.training import Annealed, Constant, Cosine, Reached, train

WORLD = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2))
ENCODER = Fresh(mlp, 3, 3, widths=(16,), onto=Sphere(3))
SHORT = {"steps": 40, "batch": 64, "lr": 1e-2}


def weights(encoder):
    return torch.cat([p.detach().flatten() for p in encoder.parameters()])


def test_training_lowers_the_loss_and_recovers_latents():
    run = train(Fresh(mlp, 3, 3, widths=(64, 64)), WORLD, Supervised(), steps=300, batch=256, lr=1e-2)
    loss = run.curves[0].loss
    assert loss[-1] < 0.1 * loss[0]
    assert len(loss) == 200
    assert run.curves[0].steps[-1] == 300
    raw = zhat.metrics.linear_r2(*(getattr(WORLD.sample(2000, generator=torch.Generator()), k)[0] for k in "zx")).value
    assert zhat.score(run.encoder, WORLD)[zhat.Equivalence.AFFINE].value > raw + 0.05


@pytest.mark.parametrize("objective", [InfoNCE(temperature=0.1), Supervised()], ids=repr)
def test_a_seed_alone_is_that_seed_in_a_stack(objective):
    worlds = [replace(WORLD, seed=s) for s in (0, 1, 2)]
    stack = train(ENCODER, worlds, objective, seeds=(0, 1, 2), **SHORT)
    for s in (0, 2):
        alone = train(ENCODER, worlds[s], objective, seed=s, **SHORT)
        assert torch.allclose(weights(alone.encoder), weights(stack.encoders[s]), atol=1e-4)
        assert alone.curves[0].loss == pytest.approx(stack.curves[s].loss, abs=1e-4)
    assert not torch.allclose(weights(stack.encoders[0]), weights(stack.encoders[1]), atol=1e-2)


def test_the_module_that_comes_in_is_left_as_it_was():
    encoder = ENCODER()
    before = weights(encoder).clone()
    trained = train(encoder, WORLD, InfoNCE(), **SHORT).encoder
    assert torch.equal(weights(encoder), before)
    assert not torch.equal(weights(trained), before)


def test_any_module_and_any_callable_will_do():
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh())
            self.head = torch.nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.body(x))

    def variance_floor(h, batch):
        return torch.relu(1 - h.std(dim=(0, 1))).mean()

    run = train(Own, WORLD, variance_floor, seeds=(0, 1, 2), **SHORT)
    assert run.curves[2].loss[-1] < run.curves[2].loss[0]
    assert not torch.equal(run.encoders[0].body[1].running_mean, torch.zeros(8))
    assert run.encoders[0].body[1].num_batches_tracked == 40


def test_objectives_may_own_parameters():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, h, batch):
            return (self.scale * h[0] - batch.z[0]).square().mean()

    for objective in (Scaled(), Fresh(Scaled)):
        run = train(ENCODER, WORLD, objective, seeds=(0, 1), **SHORT)
        scales = [o.scale.item() for o in run.objectives]
        assert scales[0] != 1.0
        assert scales[0] != scales[1]


def test_labels_reach_the_objective():
    class Labelled:
        def sample(self, n, *, generator):
            label = torch.randint(3, (n,), generator=generator)
            return Batch(x=torch.nn.functional.one_hot(label, 3).float()[None], label=label)

    def cross_entropy(h, batch):
        return torch.nn.functional.cross_entropy(h[0], batch.label)

    run = train(Fresh(mlp, 3, 3, widths=(8,)), Labelled(), cross_entropy, seeds=(0, 1), steps=100, batch=32, lr=3e-2)
    assert run.curves[1].loss[-1] < 0.2


def test_parameters_may_learn_at_their_own_pace():
    from zhat.dgp import Box

    encoder = Fresh(mlp, 3, 3, widths=(8,), onto=Box(3))
    slow = train(encoder, WORLD, InfoNCE(), steps=1, batch=64, lr=1e-3, schedule=Constant()).encoder
    fast = train(encoder, WORLD, InfoNCE(), steps=1, batch=64, lr=1e-3, schedule=Constant(), lr_scale={"bound": 50.0})
    # The first step of Adam moves every parameter by its learning rate.
    assert (slow.onto.bound - 1).abs().max().item() == pytest.approx(1e-3, rel=1e-2)
    assert (fast.encoder.onto.bound - 1).abs().max().item() == pytest.approx(5e-2, rel=1e-2)
    assert torch.equal(slow.last.weight, fast.encoder.last.weight)


def test_schedules_start_and_end_where_they_should():
    assert Constant()(7, 100) == 1.0
    cosine = Cosine(warmup=0.1)
    factors = [cosine(i, 100) for i in range(100)]
    assert factors[0] < 0.1
    assert max(factors) == pytest.approx(1.0)
    assert factors[-1] < 1e-3
    assert factors == sorted(factors[:10]) + sorted(factors[10:], reverse=True)


def test_something_can_be_watched_on_the_way():
    seen = []

    def watch(i, encoder, objective):
        assert not encoder.training
        seen.append(i)
        return float(weights(encoder).norm())

    run = train(ENCODER, WORLD, InfoNCE(), seeds=(0, 1), watch=watch, watch_every=15, watch_name="norm", **SHORT)
    assert run.curves[1].watched_steps == (15, 30, 40)
    assert len(run.curves[1].watched) == 3
    assert run.curves[0].watched_name == "norm"
    assert seen == [0, 1] * 3


def test_progress_is_told_how_far_it_is():
    told = []
    train(ENCODER, WORLD, InfoNCE(), progress=lambda *now: told.append(now), steps=150, batch=64, lr=1e-2)
    steps = [t[0] for t in told]
    assert steps == sorted(set(steps))
    assert steps[-1] == 150
    assert all(t[1] == 150 and math.isfinite(t[2]) for t in told)


def test_slow_steps_are_told_one_by_one():
    class Slow:
        def sample(self, n, *, generator):
            return WORLD.sample(n, generator=generator)

    def slow(h, batch):
        time.sleep(0.6)
        return h.mean()

    told = []
    train(ENCODER, Slow(), slow, progress=lambda done, *_: told.append(done), steps=4, batch=8)
    assert told == [1, 2, 3, 4]


def test_a_sharper_start_ends_with_the_loss_as_given():
    sharp = Annealed(4.0, hold=0.25, until=0.75)
    factors = [sharp(i, 100) for i in range(100)]
    assert factors[:25] == [4.0] * 25
    assert factors[50] == pytest.approx(2.0)
    assert factors[75:] == [1.0] * 25
    seen = []

    def note(h, batch):
        seen.append(float(h.detach().norm(dim=-1).mean()))
        return (h**2).mean()

    train(ENCODER, WORLD, note, sharpness=sharp, steps=8, batch=16)
    assert seen[0] == pytest.approx(4.0, rel=1e-5)
    assert seen[-1] == pytest.approx(1.0, rel=1e-5)
    stacked = train(ENCODER, WORLD, InfoNCE(), sharpness=sharp, seeds=(0, 1), **SHORT)
    alone = train(ENCODER, WORLD, InfoNCE(), sharpness=sharp, seed=1, **SHORT)
    assert torch.allclose(weights(stacked.encoders[1]), weights(alone.encoder), atol=1e-4)


def test_parts_that_are_frozen_unused_or_tied_train_and_resume(tmp_path):
    class Odd(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight
            self.unused, self.frozen = torch.nn.Linear(2, 2), torch.nn.Linear(3, 3).requires_grad_(False)

        def forward(self, x):
            return self.frozen(self.second(torch.tanh(self.first(x))))

    for seeds in ((0,), (0, 1)):
        path = tmp_path / f"{len(seeds)}.safetensors"
        first = train(Odd, WORLD, InfoNCE(), seeds=seeds, checkpoint=path, **SHORT)
        again = train(Odd, WORLD, InfoNCE(), seeds=seeds, checkpoint=path, **SHORT)
        assert torch.equal(weights(first.encoders[-1]), weights(again.encoders[-1]))
        trained = first.encoders[-1]
        assert trained.first.weight is trained.second.weight
        start = zhat.randomness.build(Odd, seeds[-1], "encoder")
        assert torch.equal(trained.frozen.weight, start.frozen.weight)
        assert not torch.equal(trained.first.weight, start.first.weight)


def test_buffers_that_are_assigned_anew_are_kept():
    class Averaging(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(3, 3)
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            h = self.inner(x)
            self.mean = 0.5 * self.mean + 0.5 * h.detach().mean(0)
            return h

    for seeds in ((0,), (0, 1)):
        run = train(Averaging, WORLD, InfoNCE(), seeds=seeds, **SHORT)
        assert run.encoders[-1].mean.abs().max() > 0


def test_dropout_is_refused_because_seeds_would_not_be_independent():
    dropping = Fresh(torch.nn.Sequential, torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    with pytest.raises(BadInput, match="draws from torch's global random state"):
        train(dropping, WORLD, InfoNCE(), **SHORT)


def test_a_watched_value_that_is_no_number_is_left_out_of_the_curve():
    run = train(ENCODER, WORLD, InfoNCE(), watch=lambda i, e, o: math.nan, watch_every=10, **SHORT)
    assert run.curves[0].watched == ()
    values = iter([math.nan, 1.0, 2.0, 3.0])
    run = train(ENCODER, WORLD, InfoNCE(), watch=lambda i, e, o: next(values), watch_every=10, **SHORT)
    assert run.curves[0].watched_steps == (20, 30, 40)


class Exploding:
    """A world whose observations become infinite at some draw."""

    def __init__(self, after=0):
        self.calls, self.after = 0, after

    def __repr__(self):
        return "Exploding()"

    def sample(self, n, *, generator):
        batch = WORLD.sample(n, generator=generator)
        self.calls += n > 1
        if self.calls > self.after:
            return Batch(x=batch.x * math.inf, z=batch.z)
        return batch


def test_a_loss_that_is_no_number_stops_with_a_sentence():
    with pytest.raises(Diverged, match="the loss of seed 5 became nan at step 0, at the very first step"):
        train(ENCODER, Exploding(), InfoNCE(), seed=5, **SHORT)
    with pytest.raises(Diverged, match=r"became nan at step 64, after \d.* one step earlier. Lower the learning rate"):
        train(ENCODER, Exploding(after=1), InfoNCE(), steps=100, batch=64)


class Interrupting:
    """A world in which somebody presses Ctrl-C during the second block of draws."""

    def __init__(self):
        self.calls = 0

    def __repr__(self):
        return "Interrupting()"

    def sample(self, n, *, generator):
        self.calls += n > 1
        if self.calls == 2 and n > 1:
            os.kill(os.getpid(), signal.SIGINT)
        return WORLD.sample(n, generator=generator)


def test_ctrl_c_finishes_the_step_keeps_the_state_and_the_next_call_goes_on(tmp_path):
    how = {"steps": 200, "batch": 64, "lr": 1e-2, "checkpoint": tmp_path / "state.safetensors"}
    world = Interrupting()
    before = signal.getsignal(signal.SIGINT)  # a background shell starts its jobs with SIGINT ignored
    with pytest.raises(KeyboardInterrupt, match="start again to go on from"):
        train(ENCODER, world, InfoNCE(), **how)
    assert signal.getsignal(signal.SIGINT) == before
    resumed = train(ENCODER, world, InfoNCE(), **how)
    unbroken = train(ENCODER, WORLD, InfoNCE(), steps=200, batch=64, lr=1e-2)
    assert torch.equal(weights(resumed.encoder), weights(unbroken.encoder))
    assert resumed.curves[0].loss == unbroken.curves[0].loss


def test_training_outside_the_main_thread_works_without_signals():
    result = []
    thread = threading.Thread(target=lambda: result.append(train(ENCODER, WORLD, InfoNCE(), **SHORT)))
    thread.start()
    thread.join()
    assert len(result[0].encoders) == 1


def test_a_finished_checkpoint_gives_the_result_at_once(tmp_path):
    path = tmp_path / "deep" / "state.safetensors"
    first = train(ENCODER, WORLD, InfoNCE(), checkpoint=path, **SHORT)
    told = []
    again = train(ENCODER, WORLD, InfoNCE(), checkpoint=path, progress=lambda *now: told.append(now), **SHORT)
    assert told == []
    assert torch.equal(weights(first.encoder), weights(again.encoder))
    assert first.curves == again.curves


def test_a_checkpoint_of_other_settings_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "state.safetensors"
    train(ENCODER, WORLD, InfoNCE(), checkpoint=path, **SHORT)
    before = path.read_bytes()
    others = (
        {"objective": InfoNCE(temperature=0.5)},
        {"seed": 1},
        {"encoder": mlp(3, 3, widths=(16,), onto=Sphere(3), seed=5)},
        {"watch": lambda i, e, o: 0.0, "watch_every": 7},
    )
    for other in others:
        with pytest.raises(BadInput, match="belongs to a run with other settings"):
            train(**{"encoder": ENCODER, "world": WORLD, "objective": InfoNCE(), "checkpoint": path, **SHORT} | other)
    assert path.read_bytes() == before


KILLED = """
import sys, time
from pathlib import Path
from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.experiment import Budget, Row, run
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE
from zhat.training import Constant, Recipe

row = Row(
    name="killed", title="killed now and then",
    process=Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), InvertibleMLP(layers=2)),
    encoder=Fresh(mlp, 3, 3, widths=(16,), onto=Sphere(3)),
    objective=InfoNCE(temperature=0.1),
    budgets=(Budget("short", Recipe(1500, 64, 1e-2, Constant()), profile_rows=1000),),
)
print("ready", flush=True)
for seeds in ((0,), (1, 2)):
    run(row, row.budget("short"), seeds=seeds, out=Path(sys.argv[1]), checkpoint_every=0.05)
print("done", flush=True)
"""


def scores(root):
    out = {}
    for path in sorted(Path(root).rglob("seed-*/score.json")):
        kept = json.loads(path.read_text())
        out[path.parent.name] = (kept["learned"], kept["raw"])
    return out


def test_killed_ten_times_at_random_nothing_finished_is_lost_and_the_result_is_the_unbroken_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(KILLED)
    chance = random.Random(0)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def start(folder):
        return subprocess.Popen([sys.executable, script, folder], stdout=subprocess.PIPE, text=True, env=environment)

    finished, kills = {}, 0
    for _ in range(60):
        with start(tmp_path / "broken") as process:
            assert process.stdout.readline() == "ready\n"
            if kills < 10:
                time.sleep(chance.uniform(0.05, 0.6))
                process.kill()
                kills += 1
            ended = "done" in process.stdout.read()
        now = scores(tmp_path / "broken")
        assert finished.items() <= now.items()
        finished = now
        if ended:
            break
    assert kills == 10
    with start(tmp_path / "unbroken") as process:
        assert "done" in process.stdout.read()
    assert sorted(finished) == ["seed-0", "seed-1", "seed-2"]
    assert scores(tmp_path / "unbroken") == finished
    assert not list((tmp_path / "broken").rglob("checkpoint*"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: train(ENCODER(), WORLD, InfoNCE(), seeds=(0, 1), **SHORT),
            "2 seeds need 2 encoders .* but one module",
        ),
        (lambda: train(ENCODER, [WORLD], InfoNCE(), seeds=(0, 1), **SHORT), "1 processes for 2 seeds"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), seeds=(1, 1), **SHORT), "`seeds` must be different"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), seeds=(), **SHORT), "`seeds` must be different"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), steps=-1), "`steps` must be a whole number"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), steps=1, device="nonsense"), "the device 'nonsense' cannot be used"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), steps=1, precision="bf16"), "precision 'bf16' needs a GPU"),
        (
            lambda: train(ENCODER, WORLD, InfoNCE(), steps=1, precision="int4"),
            "`precision` must be one of float32, tf32",
        ),
        (lambda: train(dict, WORLD, InfoNCE(), steps=1), "must be or make an nn.Module, but it made {}"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), steps=1, checkpoint="/proc/nope/x"), "cannot write to /proc/nope"),
        (lambda: train(ENCODER, WORLD, InfoNCE(), steps=1, lr=0.0), "`lr` must be above 0"),
        (
            lambda: train(torch.nn.Identity, WORLD, InfoNCE(), steps=1),
            "no parameters, so there is nothing to train",
        ),
        (
            lambda: train(ENCODER, WORLD, lambda h, b: h, steps=1),
            r"returns one number, but a tensor of shape \(2, 1024, 3\)",
        ),
        (
            lambda: train(ENCODER, WORLD, InfoNCE(), lr_scale={"bund": 2.0}, steps=1),
            "names 'bund', but .* bias, weight",
        ),
    ],
)
def test_bad_use_gets_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call()


def test_a_run_with_several_seeds_has_no_single_encoder():
    with pytest.raises(BadInput, match="holds 2 encoders; take one from `encoders`"):
        _ = train(ENCODER, WORLD, InfoNCE(), seeds=(0, 1), steps=1, batch=8).encoder


def test_an_encoder_for_other_observations_is_refused_in_a_sentence():
    with pytest.raises(BadInput, match="the encoder takes 4 values a row, but the observations have 3. Make it for 3"):
        train(Fresh(mlp, 4, 3, widths=(8,)), WORLD, InfoNCE(), steps=1)


def test_without_steps_the_encoder_stays_as_it_was_built_even_if_it_has_no_parameters():
    run = train(ENCODER, WORLD, InfoNCE(), steps=0, seeds=(3, 4))
    built = zhat.randomness.build(ENCODER, 4, "encoder")
    assert torch.equal(weights(run.encoders[1]), weights(built))
    assert run.curves[0].steps == ()
    assert isinstance(train(torch.nn.Flatten(), WORLD, InfoNCE(), steps=0).encoder, torch.nn.Flatten)


def planned(*values):
    """Something to watch that takes these values, one list for each seed; it notes the weights it saw."""
    seen = [[] for _ in values]

    def watch(i, encoder, objective):
        seen[i].append(weights(encoder).clone())
        return values[i][len(seen[i]) - 1]

    return watch, seen


def test_a_seed_keeps_the_weights_with_its_highest_watched_number_until_it_has_reached_enough():
    # Seed 0 reaches 0.9 at the second look and is not moved by a higher number later; seed 1 at the fourth.
    watch, seen = planned([0.5, 0.9, 0.95, 0.1, 0.1], [0.5, 0.7, 0.6, 0.9, 0.1])
    run = train(ENCODER, WORLD, InfoNCE(), seeds=(0, 1), watch=watch, until=Reached(0.9, every=5), **SHORT)
    assert run.steps == 20
    assert run.curves[0].watched_steps == (5, 10, 15, 20)
    assert run.curves[0].steps[-1] == 20
    assert torch.equal(weights(run.encoders[0]), seen[0][1])
    assert torch.equal(weights(run.encoders[1]), seen[1][3])


def test_without_reaching_enough_the_best_weights_of_all_steps_are_kept():
    watch, seen = planned([0.3, 0.6, math.nan, 0.6, 0.2, 0.1, 0.1, 0.1])
    run = train(ENCODER, WORLD, InfoNCE(), watch=watch, until=Reached(0.9, every=5), **SHORT)
    assert run.steps == 40
    assert torch.equal(weights(run.encoder), seen[0][1])  # the earliest of equal ones
    plain = train(ENCODER, WORLD, InfoNCE(), **SHORT)
    assert not torch.equal(weights(run.encoder), weights(plain.encoder))
    assert run.curves[0].loss == plain.curves[0].loss  # looking changes nothing


def test_early_stopping_needs_something_to_watch():
    with pytest.raises(BadInput, match="`until` stops when a watched number is high enough, but nothing is watched"):
        train(ENCODER, WORLD, InfoNCE(), until=Reached(0.9), **SHORT)
    with pytest.raises(BadInput, match="`every` must be a whole number"):
        Reached(0.9, every=0)
    with pytest.raises(BadInput, match="`value` must be a finite number"):
        Reached(math.nan)


def test_early_stopping_survives_an_interruption(tmp_path):
    def norm(i, encoder, objective):
        return float(weights(encoder).norm())

    how = {"seeds": (0, 1), "watch": norm, "until": Reached(1e9, every=4), **SHORT}
    whole = train(ENCODER, WORLD, InfoNCE(), **how)
    best = [max(curve.watched) for curve in whole.curves]
    assert [float(weights(e).norm()) for e in whole.encoders] == pytest.approx(best)

    def stop(done, steps, loss):
        if done >= 22:
            raise Pulled

    kept = tmp_path / "kept"
    with pytest.raises(Pulled):
        train(ENCODER, WORLD, InfoNCE(), checkpoint=kept, checkpoint_every=0, progress=stop, **how)
    again = train(ENCODER, WORLD, InfoNCE(), checkpoint=kept, **how)
    for one, other in zip(whole.encoders, again.encoders, strict=True):
        assert torch.equal(weights(one), weights(other))
    assert again.curves == whole.curves


class Pulled(Exception):
    """Somebody pulls the plug."""


def test_a_run_that_stopped_early_is_read_from_its_checkpoint(tmp_path):
    how = {"until": Reached(0.9, every=5), "checkpoint": tmp_path / "kept", **SHORT}
    watch, _ = planned([0.5, 0.9])
    first = train(ENCODER, WORLD, InfoNCE(), watch=watch, **how)
    watch, seen = planned([0.0] * 8)
    again = train(ENCODER, WORLD, InfoNCE(), watch=watch, **how)
    assert again.steps == first.steps == 10
    assert seen == [[]]  # nothing was trained
    assert torch.equal(weights(again.encoder), weights(first.encoder))
