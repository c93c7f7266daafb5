"""What training returns: encoders, curves and settings of every seed; how it prints, and how it is kept and read again.

A run is kept as one folder for each seed, in the format of `zhat.runs`: weights as safetensors, all else as JSON, with
checksums. The architecture is kept as the text of the call that made it, `Fresh(mlp, 10, 10, onto=Sphere(dim=10,
radius=1.0))`. That text is parsed again and never evaluated, and only builders of zhat may be named in it. Of a network
of your own the weights are kept; you give the network when you load.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zhat import encoders, objectives, runs
from zhat._files import make_folder
from zhat.dgp import Box, Product, Real, Sphere
from zhat.errors import BadInput
from zhat.fresh import Fresh, describe, reading
from zhat.objectives import Objective
from zhat.results import Curve, Record
from zhat.shown import Drawn

BUILDERS: dict[str, Callable[..., Any]] = {
    **{name: getattr(encoders, name) for name in encoders.__all__},
    **{name: kind for name in objectives.__all__ if isinstance(kind := getattr(objectives, name), type)},
    **{kind.__name__: kind for kind in (Real, Sphere, Box, Product, nn.Identity, nn.Flatten)},
}
"""What the text of a kept architecture may name."""


@dataclass(frozen=True, eq=False, repr=False)
class Run(Drawn):
    """What training returns: the trained encoders and how they got there, one entry for each seed.

    Attributes:
        seeds: which.
        encoders: trained, in evaluation mode.
        objectives: with their trained weights where they own any; empty for a run that was loaded and whose objective
            zhat cannot make again.
        curves: losses, and what was watched.
        steps: how many were trained.
        seconds: wall time of all seeds together.
        settings: what was trained how: process, encoder, objective, recipe.
        provenance: versions, device, commit and date of a run that was loaded.
    """

    seeds: tuple[int, ...]
    encoders: tuple[nn.Module, ...]
    objectives: tuple[Objective, ...]
    curves: tuple[Curve, ...]
    steps: int
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def encoder(self) -> nn.Module:
        """The encoder of a run with one seed."""
        if len(self.encoders) != 1:
            raise BadInput(f"this run holds {len(self.encoders)} encoders; take one from `encoders`.")
        return self.encoders[0]

    def save(self, folder: Path | str, *, name: str = "a run of zhat.train") -> Path:
        """Keep the run in a folder, from which `zhat.load` gives it back.

        Args:
            folder: one folder `seed-<k>` for each seed is written there, whole or not at all.
            name: what was run, for a reader.
        """
        folder = Path(folder)
        places = [folder / f"seed-{seed}" for seed in self.seeds]
        if taken := [place for place in places if place.exists()]:
            raise BadInput(f"{taken[0]} holds a run already, and would be lost. Choose another folder, or remove it.")
        make_folder(folder)
        trained = self.objectives or (None,) * len(self.seeds)
        each = zip(places, self.records(name), self.encoders, trained, strict=True)
        for place, record, encoder, objective in each:
            runs.write(place, record, encoder, objective)
        return folder

    def records(self, name: str = "a run of zhat.train") -> tuple[Record, ...]:
        """The run as plain data, one record for each seed; without scores."""
        settings = {key: said(value) for key, value in self._made_of().items()}
        device = next((p.device for p in self.encoders[0].parameters()), torch.device("cpu"))
        about = dict(self.provenance) or runs.provenance(device)
        return tuple(
            Record(name, seed, settings, about, self.seconds, curve, self.seeds)
            for seed, curve in zip(self.seeds, self.curves, strict=True)
        )

    def __str__(self) -> str:
        few = ", ".join(map(str, self.seeds[:8])) + (", …" if len(self.seeds) > 8 else "")
        seeds = f"{len(self.seeds)} seeds ({few})" if len(self.seeds) > 1 else f"seed {few}"
        size = sum(p.numel() for p in self.encoders[0].parameters())
        lines = [f"{seeds}, {self.steps:,} steps in {self.seconds:.1f} s, {size:,} parameters in each encoder"]
        if all(curve.loss for curve in self.curves):
            first = statistics.fmean(curve.loss[0] for curve in self.curves)
            lines.append(f"{'loss':<10} {_over_seeds([c.loss[-1] for c in self.curves])}, at first {first:.4f}")
        if all(curve.watched for curve in self.curves):
            name = self.curves[0].watched_name
            lines.append(f"{name:<10} {_over_seeds([c.watched[-1] for c in self.curves])}")
        lines += [f"{key:<10} {_short(said(value))}" for key, value in self._made_of().items()]
        if len(self.seeds) > 1:
            lines.append("mean ± standard deviation over seeds")
        return "\n".join([*lines, "scores beside their bounds: print(zhat.score(run, world))"])

    def _made_of(self) -> dict[str, Any]:
        """The settings; a module that was trained is our copy of it, which nobody has changed since."""
        module = isinstance(self.settings.get("encoder"), nn.Module)
        return dict(self.settings) | ({"encoder": self.encoders[0]} if module else {})

    def __repr__(self) -> str:
        kind = type(self.encoders[0]).__name__
        return f"Run(seeds={self.seeds}, {len(self.encoders)} × {kind}, steps={self.steps}, seconds={self.seconds:.1f})"

    def _result(self) -> tuple[Record, ...]:
        return self.records()

    def _lines(self) -> Iterator[dict[str, Any]]:
        for seed, curve in zip(self.seeds, self.curves, strict=True):
            seen = dict(zip(curve.watched_steps, curve.watched, strict=True))
            losses = dict(zip(curve.steps, curve.loss, strict=True))
            for step in sorted(losses.keys() | seen.keys()):
                line = {"seed": seed, "step": step, "loss": losses.get(step)}
                yield line | ({curve.watched_name: seen.get(step)} if seen else {})


def load(folder: Path | str, encoder: nn.Module | Callable[[], nn.Module] | None = None) -> Run:
    """A run that was kept by `Run.save`, or by `zhat reproduce` and `zhat demo`, with its trained encoders.

    Args:
        folder: of a run: it holds `seed-0` and its like, or is one of them.
        encoder: the network, where it is not one of zhat's: a module, or something that makes one when called.

    Raises:
        CorruptRun: if a file is missing or differs from what was written.
    """
    folder = Path(folder)
    places = list(runs.scan(folder))
    if not places:
        raise BadInput(f"{folder} holds no run: there is no folder seed-… in it. Give what Run.save wrote.")
    if len({place.parent for place in places}) > 1:
        each = ", ".join(dict.fromkeys(str(place.parent) for place in places[:4]))
        raise BadInput(f"{folder} holds several runs. Give the folder of one of them, for instance {each}.")
    records = [runs.read(place) for place in places]
    first = records[0]
    made = [_encoder(place, record, encoder) for place, record in zip(places, records, strict=True)]
    trained = [_objective(place, record) for place, record in zip(places, records, strict=True)]
    return Run(
        seeds=tuple(record.seed for record in records),
        encoders=tuple(made),
        objectives=tuple(one for one in trained if one is not None) if None not in trained else (),
        curves=tuple(record.curve for record in records),
        steps=max((*first.curve.steps, 0)),
        seconds=first.seconds,
        settings=first.settings,
        provenance=first.provenance,
    )


def said(setting: Any) -> str:
    """A setting as text: a module by the call that made it, or by its type where that call makes something else.

    What would not be read back as the same setting, such as a builder of yours that bears the name of one of zhat's,
    is said to be your own.
    """
    if isinstance(setting, nn.Module):
        made = getattr(setting, "made", None)
        return said(made) if isinstance(made, Fresh) and _makes(made, setting) else type(setting).__name__
    if isinstance(setting, tuple | list) and all(each == setting[0] for each in setting):
        return said(setting[0])
    if isinstance(setting, str):
        return setting
    text = describe(setting)
    if isinstance(setting, Fresh):
        try:
            with torch.device("meta"):
                same = reading(text, BUILDERS) == setting
        except BadInput:
            same = False
        return text if same else f"own {text}"
    return text


def _makes(made: Fresh, network: nn.Module) -> bool:
    """Whether a call still makes this network: somebody may have added a layer to it since."""
    with torch.device("meta"):
        return repr(made()) == repr(network)


def filled(network: nn.Module, weights: Mapping[str, Tensor], what: str) -> nn.Module:
    """A network with the weights that were kept for it, or a sentence about what does not fit."""
    wanted, came = _shapes(network.state_dict()), _shapes(weights)
    if wanted and not weights:
        raise BadInput(f"{what} was kept without weights. Train it again and keep them.")
    if odd := sorted(name for name in wanted.keys() | came.keys() if wanted.get(name) != came.get(name)):
        name = odd[0]
        state = f"has the shape {came[name]} there" if name in came else "is not there"
        here = f"{wanted[name]} in the network" if name in wanted else "not part of the network"
        raise BadInput(f"the weights of {what} do not fit the network: {name} {state} and is {here}.")
    network.load_state_dict(dict(weights))
    return network.eval()


def architecture(text: str) -> Callable[[], nn.Module]:
    """What makes the network that a text names; refused where the text names anything but builders of zhat."""
    with torch.device("meta"):  # a part of it may be made while it is read
        found = reading(text, BUILDERS)
    if not isinstance(found, Fresh):
        raise BadInput(f"{_short(text)} makes no network")

    def make() -> nn.Module:
        network = reading(text, BUILDERS)()
        if not isinstance(network, nn.Module):
            raise BadInput(f"{_short(text)} makes no network")
        return network

    return make


def fitting(make: Callable[[], nn.Module], weights: Mapping[str, Tensor], what: str) -> nn.Module:
    """The network that something makes, with kept weights; looked at before memory is taken for it."""
    try:
        with torch.device("meta"):  # a text may ask for more memory than there is; the weights say what is needed
            hollow = make()
        if _shapes(hollow.state_dict()) != _shapes(weights):
            return filled(hollow, weights, what)  # which says what differs
        network = make()
    except (TypeError, RuntimeError, AttributeError, OverflowError) as error:
        raise BadInput(f"the network of {what} cannot be made: {error}") from None
    return filled(network, weights, what)


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _encoder(place: Path, record: Record, given: nn.Module | Callable[[], nn.Module] | None) -> nn.Module:
    """The trained encoder of one seed."""
    text = str(record.settings.get("encoder", ""))
    if given is None:
        try:
            make = architecture(text)
        except BadInput as error:
            raise BadInput(
                f"the encoder of {place} is {_short(text)}, which zhat cannot make ({str(error).rstrip('.')}). Make "
                "it and give it, zhat.load(folder, encoder=my_module): the weights are there."
            ) from None
        return fitting(make, _weights(place, "encoder"), str(place))
    network = copy.deepcopy(given) if isinstance(given, nn.Module) else given()
    if not isinstance(network, nn.Module):
        raise BadInput(f"`encoder` must be or make an nn.Module, but {describe(network)} came.")
    return filled(network, _weights(place, "encoder"), str(place))


def _objective(place: Path, record: Record) -> Objective | None:
    """The objective of one seed with its weights; None where its text is not one that zhat can make again."""
    try:
        found = reading(str(record.settings.get("objective", "")), BUILDERS)
        judge: Objective = found() if isinstance(found, Fresh) else found
    except (BadInput, TypeError):
        return None
    if not callable(judge) or isinstance(judge, type):
        return None
    if isinstance(judge, nn.Module):
        filled(judge, _weights(place, "objective"), f"the objective of {place}")
    return judge


def _weights(place: Path, part: str) -> dict[str, Tensor]:
    """What was kept of a part; nothing of one that has no weights."""
    return runs.weights(place, part) if (place / f"{part}.safetensors").exists() else {}


def _over_seeds(values: Sequence[float]) -> str:
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4f}{spread}"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:99]}…"
