"""An encoder for your arrays, in scikit-learn's manners: fit, transform, pipelines, cloning."""

from __future__ import annotations

import copy
import json
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import sklearn
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from zhat import _checks, randomness, runs
from zhat._files import make_folder, write_whole
from zhat._version import __version__
from zhat.datasets import Arrays, Augmented, GivenPairs, NextRow, SameLabel
from zhat.dgp import Process, Space, Sphere
from zhat.encoders import mlp, output
from zhat.errors import BadInput, CorruptRun, UnknownName
from zhat.files import Embeddings, embeddings
from zhat.files.reading import read_bytes
from zhat.files.sealed import sealed, unsealed
from zhat.fresh import Fresh, describe, reading
from zhat.objectives import CrossEntropy, InfoNCE, InstanceDiscrimination, NegativeLp
from zhat.progress import Progress
from zhat.report.plots import in_plane, over_time
from zhat.training import train
from zhat.training.run import BUILDERS, filled, fitting, said

OBJECTIVES = ("infonce", "lp", "instance", "cross-entropy")
PAIRS = ("auto", "next row", "same label", "given", "none")
_ROWS = 2**16  # transformed at a time
_FILE = "estimator.safetensors"


class IdentifiableEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""A network trained so that two fits agree up to a simple map, where the theory of its objective applies.

    Columns are brought to zero mean and unit variance first; a constant one counts for nothing. Each row is then
    trained to be told from other rows by its positive, which the data name:

    | `pairs` | the positive of a row |
    |---|---|
    | "next row" | the one after it: rows in time order |
    | "same label" | another row with the same `y` |
    | "given" | `fit(X, pairs=…)`: rows of the width of X, or pairs of row numbers `(p, 2)` |
    | a function `(rows, generator) -> rows` | an augmented copy of it; so is the row itself |
    | "none" | none: single rows, for "instance" and "cross-entropy" |

    | `objective` | is |
    |---|---|
    | "infonce" | `InfoNCE(Dot(), temperature)`, onto the unit sphere |
    | "lp" | `InfoNCE(NegativeLp(p), temperature)`, onto all of R^k |
    | "instance" | `InstanceDiscrimination`, every row a class, onto the unit sphere |
    | "cross-entropy" | `CrossEntropy` over the classes in `y`, onto all of R^k |
    | an object | any callable `(h, batch) -> scalar`, or `Fresh(…)` of a module |

    X is a matrix `(n, m)`, or several recordings with the same columns as a list of them; a recording may also be a
    file (`.npy`, `.csv`, `.mat`, `.h5`, …), or `zhat.files.embeddings(path, key=…)` where a file holds several arrays.
    A positive is never of another recording than its row, and of several recordings `transform` returns a list.

    Args:
        n_components: dimension k of the representation. A sphere in k dimensions holds k - 1 of them.
        objective: one of the above.
        pairs: one of the above; "auto" is "given" where `fit` gets pairs, "none" for "instance" and "cross-entropy",
            else "next row".
        p: of "lp".
        temperature: of the objective; None takes 0.1 on the sphere and 1 elsewhere.
        widths: hidden widths of the network.
        encoder: a network of your own, `(rows, m) -> (rows, n_components)`, or something that makes one when called,
            such as `Fresh(residual_mlp, 6, 3)`; None takes `mlp` with `widths`. It sees standardised rows.
        onto: where the representation lands: a `Space` such as `Sphere(3)` or `Box(3)`, None for all of R^k, "auto" for
            what the objective is made for. A network of your own is followed by this step, too.
        lag: of "next row": how many rows later the positive lies.
        steps: of training.
        batch: rows in a step; at most as many as there are.
        lr: Adam's learning rate, which falls to 0 along a cosine.
        random_state: of weights and draws.
        device: where to train: "cpu", "cuda", … The representation is computed on the CPU, in float64.
        verbose: show a bar while training.

    Attributes:
        encoder_: the trained module, for standardised rows.
        mean_: of the columns.
        scale_: of the columns; 1 for constant ones.
        losses_: at some steps.
        n_features_in_: columns of X.

    What the fit recovers is for you to measure: `zhat.consistency` between refits, `zhat.decode` against known factors.

    Example:
        >>> angle = np.cumsum(np.random.default_rng(0).normal(0, 0.1, 500))
        >>> X = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], 1)
        >>> model = IdentifiableEncoder(2, steps=300, batch=128, widths=(32,), random_state=0)
        >>> h = model.fit_transform(X)
        >>> h.shape, bool(np.allclose(np.linalg.norm(h, axis=1), 1))
        ((500, 2), True)
    """

    def __init__(
        self,
        n_components: int = 3,
        *,
        objective: str | Callable[..., Any] | Fresh = "infonce",
        pairs: str | Callable[..., Any] = "auto",
        p: float = 1.0,
        temperature: float | None = None,
        widths: Sequence[int] = (128, 128, 128),
        encoder: nn.Module | Callable[[], nn.Module] | None = None,
        onto: str | Space | None = "auto",
        lag: int = 1,
        steps: int = 2000,
        batch: int = 512,
        lr: float = 1e-3,
        random_state: Any = None,
        device: str = "cpu",
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.objective = objective
        self.pairs = pairs
        self.p = p
        self.temperature = temperature
        self.widths = widths
        self.encoder = encoder
        self.onto = onto
        self.lag = lag
        self.steps = steps
        self.batch = batch
        self.lr = lr
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, series: Any = None) -> IdentifiableEncoder:
        """Train on rows `(n, m)`.

        Args:
            X: observations; in time order for pairs="next row". Or several recordings, as a list.
            y: labels, for pairs="same label" and objective="cross-entropy"; otherwise not looked at.
            pairs: positives of the rows, `(n, m)`, or pairs of row numbers, `(p, 2)`, whole numbers.
            series: which trial each row belongs to, `(n,)`; the positive of a row is of the same trial.
        """
        k = _checks.count(self.n_components, "n_components")
        how = self._how(pairs)
        X, y, series = _together(X, y, series)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        mean, scale = X.mean(0), X.std(0)
        moved = scale > 1e-12 * np.abs(X).max(0)
        self.mean_, self.scale_ = mean, np.where(moved, scale, 1.0)
        rows = self._standard(X)
        process = self._process(how, rows, y, pairs, series)
        objective, space = self._objective(k, process)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        encoder = self._network(rows.shape[1], k, space, seed)
        batch = max(2, min(_checks.count(self.batch, "batch"), len(rows)))
        settings: dict[str, Any] = {"steps": self.steps, "batch": batch, "lr": self.lr, "seed": seed}
        if self.verbose:
            with Progress("fitting") as progress:
                run = train(encoder, process, objective, device=self.device, progress=progress, **settings)
        else:
            run = train(encoder, process, objective, device=self.device, **settings)
        self.encoder_ = run.encoder.cpu().double()
        self.space_ = space
        self.losses_ = np.array(run.curves[0].loss)
        self._n_features_out = k
        return self

    def transform(self, X: Any) -> Any:
        """The representation of rows, `(n, m) -> (n, n_components)`; of several recordings, a list."""
        check_is_fitted(self)
        if _several(X):
            chosen = getattr(self, "_sklearn_output_config", {}).get("transform")
            if (chosen or sklearn.get_config()["transform_output"]) != "default":
                raise BadInput(
                    "several recordings are transformed into a list of arrays, but data frames were asked for "
                    "(set_output). Transform the recordings one by one."
                )
            return [self.transform(each) for each in X]
        X = validate_data(self, _read(X), dtype=np.float64, reset=False)
        rows = torch.from_numpy(self._standard(X))
        with torch.no_grad():
            return torch.cat([self.encoder_(some) for some in rows.split(_ROWS)]).numpy()

    def plot(self, X: Any, y: Any = None, *, series: Any = None, over: str = "time", ax: Any = None) -> Any:
        """Draw the representation of rows with matplotlib; returns the axes.

        Args:
            X: as for `fit`.
            y: a number for each row, which colours the points of over="plane"; None takes the number of the row.
            series: which trial each row belongs to; lines over time break between trials and recordings.
            over: "time" draws each component as a line, "plane" the first two components as points.
            ax: axes to draw on; None makes a figure.
        """
        if over not in ("time", "plane"):
            raise UnknownName("way to draw a representation", str(over), ("time", "plane"))
        X, y, series = _together(X, y, series)
        transformed = self.transform(X)
        h = np.asarray(transformed)
        names = [str(name) for name in getattr(transformed, "columns", [f"h{j + 1}" for j in range(h.shape[1])])]
        if series is not None and len(series) != len(h):
            raise BadInput(f"`series` must name the trial of each of {len(h)} rows, but it has {len(series)}.")
        if over == "time":
            return over_time(h, series=series, names=names, ax=ax)
        if h.shape[1] < 2:
            raise BadInput("over='plane' draws two components, but n_components=1. Use over='time'.")
        if y is not None and len(y) != len(h):
            raise BadInput(f"`y` must hold one number for each of {len(h)} rows, but it has {len(y)}.")
        return in_plane(h, colour=y, name="row" if y is None else "y", ax=ax)

    def save(self, folder: Path | str) -> Path:
        """Keep the fitted model as one safetensors file with a checksum in a folder; `load` gives it back.

        Weights, means and scales are kept, and every parameter as text. What is no plain value and no builder of zhat
        (a function, a network of your own) is kept by name, and is given again to `load`.
        """
        check_is_fitted(self)
        about = {
            "zhat": __version__,
            "params": {name: _told(value) for name, value in self.get_params(deep=False).items()},
            "space": describe(self.space_),
            "columns": int(self.n_features_in_),
            "names": [str(name) for name in getattr(self, "feature_names_in_", ())],
            "provenance": runs.provenance("cpu"),
        }
        arrays = {"mean": self.mean_, "scale": self.scale_, "losses": self.losses_}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}
        weights = {f"encoder/{k}": t.detach().cpu().contiguous() for k, t in self.encoder_.state_dict().items()}
        path = make_folder(folder) / _FILE
        write_whole(path, sealed(tensors | weights, {"estimator": json.dumps(about)}))
        return Path(folder)

    @classmethod
    def load(cls, folder: Path | str, **given: Any) -> Self:
        """A fitted model that `save` kept.

        Args:
            folder: where it was kept.
            **given: parameters that could not be kept as text, such as `encoder=` for a network of your own.

        Raises:
            CorruptRun: if the file differs from what was written.
        """
        path = Path(folder) / _FILE
        if not path.exists():
            raise BadInput(f"{folder} holds no {_FILE}. Give a folder that IdentifiableEncoder.save wrote.")
        try:
            tensors, header = unsealed(read_bytes(path, "be a model that IdentifiableEncoder.save wrote"))
            about = json.loads(header["estimator"])
            params, space, columns, names = (about[key] for key in ("params", "space", "columns", "names"))
            kept = {name: tensors.pop(name).numpy() for name in ("mean", "scale", "losses")}
            if kept["mean"].shape != (columns,) or kept["scale"].shape != (columns,) or len(names) not in (0, columns):
                raise ValueError(f"it speaks of {columns} columns")
            model, unread = cls(), []
            if not params.keys() <= model.get_params(deep=False).keys():
                raise ValueError("it has other parameters than this version of zhat")
            for name, text in params.items():
                try:
                    model.set_params(**{name: reading(text, BUILDERS)})
                except BadInput:
                    unread.append(name)
            space = reading(space, BUILDERS)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            why = str(error).rstrip(".") or type(error).__name__
            raise CorruptRun(f"{path} is damaged: {why}. Fit the model again and save it.") from None
        model.set_params(**given)
        if "encoder" in unread and model.encoder is None:
            raise BadInput(
                f"the network in {folder} is {params['encoder']}, which zhat cannot make. Make it and give it: "
                "IdentifiableEncoder.load(folder, encoder=my_module)."
            )
        for name in unread:
            if name not in given:
                warnings.warn(
                    f"{name}={params[name]} could not be kept; {name} is its default here, which matters only if you "
                    f"fit again. Give it as IdentifiableEncoder.load(folder, {name}=…).",
                    stacklevel=2,
                )
        weights = {name.removeprefix("encoder/"): tensor for name, tensor in tensors.items()}
        k = _checks.count(model.n_components, "n_components")

        def network() -> nn.Module:
            return model._network(columns, k, space, None).double()

        if isinstance(model.encoder, nn.Module):
            model.encoder_ = filled(network(), weights, str(folder))
        else:
            model.encoder_ = fitting(network, weights, str(folder))
        model.mean_, model.scale_, model.losses_ = kept["mean"], kept["scale"], kept["losses"]
        model.space_, model.n_features_in_, model._n_features_out = space, columns, k
        if names:
            model.feature_names_in_ = np.array(names, dtype=object)
        return model

    def _network(self, columns: int, k: int, space: Space | None, seed: int | None) -> nn.Module:
        """The network, as it begins."""
        if self.encoder is None:
            return mlp(columns, k, widths=tuple(self.widths), onto=space, seed=seed)
        if isinstance(self.encoder, nn.Module):
            network = copy.deepcopy(self.encoder)
        elif not callable(self.encoder):
            raise BadInput(f"`encoder` must be an nn.Module or make one when called, but {self.encoder!r} came.")
        else:
            network = self.encoder() if seed is None else randomness.build(self.encoder, seed, "encoder")
        if not isinstance(network, nn.Module):
            raise BadInput(f"`encoder` must be or make an nn.Module, but {describe(network)} came.")
        if seed is not None:
            wanted = f"`encoder` must make ({{rows}}, {k}) of standardised rows ({{rows}}, {columns})"
            trial = copy.deepcopy(network).cpu().float().eval()
            try:
                with torch.no_grad():
                    came = tuple(trial(torch.zeros(2, columns)).shape)
            except (RuntimeError, ValueError, TypeError) as error:
                why = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise BadInput(f"{wanted.format(rows='n')}, but it raises: {why}.") from None
            if came != (2, k):
                raise BadInput(f"{wanted.format(rows=2)}, but it makes {came}. Make them agree with n_components={k}.")
        if space is None:
            return network
        return nn.Sequential(OrderedDict(network=network, onto=output(space, dim=k)))

    def _standard(self, X: Any) -> Any:
        return (X - self.mean_) / self.scale_

    def _how(self, given: Any) -> str:
        """The name of the pairing."""
        if callable(self.pairs):
            how = "augmented"
        elif self.pairs not in PAIRS:
            raise UnknownName("pairing", str(self.pairs), PAIRS)
        elif self.pairs != "auto":
            how = str(self.pairs)
        elif given is not None:
            how = "given"
        else:
            how = "none" if self.objective in ("instance", "cross-entropy") else "next row"
        if (how == "given") != (given is not None):
            came = "none came" if given is None else f"pairing is {how!r}"
            raise BadInput(f"fit(X, pairs=…) belongs to pairs='given', but {came}. Give both or neither.")
        if how == "none" and self.objective in ("infonce", "lp"):
            raise BadInput(f"{self.objective} compares a row with its positive, but pairs='none'. Use 'next row'.")
        return how

    def _process(self, how: str, rows: Any, y: Any, pairs: Any, series: Any) -> Process:
        if how == "same label" or self.objective == "cross-entropy":
            y = self._labels(y, len(rows), how)
        if how == "augmented":
            assert callable(self.pairs)
            return Augmented(rows, self.pairs)
        if how == "same label":
            return SameLabel(rows, y)
        if how == "given":
            return self._given(rows, pairs)
        if how == "none":
            return Arrays(rows, y if self.objective == "cross-entropy" else None)
        lag = _checks.count(self.lag, "lag")
        if len(rows) < 2 + lag:
            raise BadInput(f"pairs='next row' needs at least {2 + lag} rows, n_samples={len(rows)} came.")
        return NextRow(rows, lag=lag, series=series)

    def _labels(self, y: Any, n: int, how: str) -> Any:
        if y is None:
            what = f"pairs={how!r}" if how == "same label" else "objective='cross-entropy'"
            raise BadInput(f"{what} requires y to be passed, but the target y is None. Use fit(X, y).")
        given = np.asarray(y)
        if given.shape != (n,):
            raise BadInput(f"`y` must hold one label for each of {n} rows, but its shape is {given.shape}.")
        if len(np.unique(given)) < 2:
            raise BadInput("`y` must hold at least 2 different labels, but there is one class only.")
        return given

    def _given(self, rows: Any, pairs: Any) -> Process:
        given = np.asarray(pairs.detach().cpu() if hasattr(pairs, "detach") else pairs)
        if given.ndim == 2 and given.shape[1] == 2 and given.dtype.kind in "iu":
            if len(given) < 2 or given.min() < 0 or given.max() >= len(rows):
                raise BadInput(f"`pairs` must hold at least 2 pairs of row numbers from 0 to {len(rows) - 1}.")
            return GivenPairs(rows[given[:, 0]], rows[given[:, 1]])
        if given.shape != rows.shape or given.dtype.kind not in "fiu":
            raise BadInput(
                f"`pairs` must be numbers of the shape of X, {rows.shape}, or pairs of row numbers (p, 2), but "
                f"{given.dtype} of shape {given.shape} came."
            )
        return GivenPairs(rows, self._standard(given.astype(np.float64)))

    def _objective(self, k: int, process: Any) -> tuple[Any, Space | None]:
        """The objective, and the space the representation lands on."""
        named = isinstance(self.objective, str)
        if named and self.objective not in OBJECTIVES:
            raise UnknownName("objective", str(self.objective), OBJECTIVES)
        if not named and not callable(self.objective):
            raise BadInput(
                f"`objective` must be a name or a callable (h, batch) -> scalar, but {self.objective!r} came."
            )
        space = self.onto
        if isinstance(space, str):
            if space != "auto":
                raise BadInput(f"`onto` must be a space such as Sphere({k}), None or 'auto', but {space!r} came.")
            space = Sphere(k) if self.objective in ("infonce", "instance") and k > 1 else None
        warmth = (0.1 if isinstance(space, Sphere) else 1.0) if self.temperature is None else self.temperature
        warmth = _checks.positive(warmth, "temperature")
        if self.objective == "infonce":
            return InfoNCE(temperature=warmth), space
        if self.objective == "lp":
            return InfoNCE(NegativeLp(self.p), temperature=warmth), space
        if self.objective in ("instance", "cross-entropy"):
            kind = InstanceDiscrimination if self.objective == "instance" else CrossEntropy
            unit = isinstance(space, Sphere)
            how = {"unit_rows": unit, "unit_features": unit, "inverse_temperature": 1 / warmth}
            return Fresh(kind, k, process.labels, **how), space
        return self.objective, space


def _told(value: Any) -> str:
    """A parameter as text, from which it is read again where that is possible."""
    return said(value) if isinstance(value, nn.Module | Fresh) else describe(_plain(value))


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _is_file(X: Any) -> bool:
    return isinstance(X, str | Path | Embeddings)


def _several(X: Any) -> bool:
    """Whether X is several recordings: a list of files or matrices, not one matrix written as a list of rows."""
    if not isinstance(X, list | tuple) or not X:
        return False
    return all(_is_file(each) or getattr(each, "ndim", None) == 2 for each in X)


def _read(X: Any) -> Any:
    """The rows of a file; anything else as it came."""
    return np.concatenate(list(embeddings(X).blocks())) if _is_file(X) else X


def _together(X: Any, y: Any, series: Any) -> tuple[Any, Any, Any]:
    """Recordings one below the other, with their labels, and the trial of every row by recording."""
    if not _several(X):
        rows = _read(X)
        if series is not None:
            series = np.asarray(series)
            if series.shape != (len(rows),):
                raise BadInput(
                    f"`series` must name the trial of each of {len(rows)} rows, but its shape is {series.shape}."
                )
        return rows, y, series
    parts = [np.asarray(_checks.array(_read(each))) for each in X]
    if len({part.shape[1] for part in parts}) > 1:
        columns = ", ".join(str(part.shape[1]) for part in parts)
        raise BadInput(f"recordings must have the same columns, but they have {columns} columns.")
    lengths = [len(part) for part in parts]
    y = _joined(y, lengths, "y")
    trials = _joined(series, lengths, "series")
    recording = np.repeat(np.arange(len(parts)), lengths)
    if trials is not None:
        recording = np.array([f"{i}/{trial}" for i, trial in zip(recording, trials, strict=True)])
    return np.concatenate(parts), y, recording


def _joined(values: Any, lengths: list[int], name: str) -> Any:
    """What belongs to the rows of several recordings, one below the other: given as a list like them, or as one."""
    if values is None:
        return None
    if isinstance(values, list | tuple) and len(values) == len(lengths) and all(np.ndim(each) == 1 for each in values):
        came = [len(each) for each in values]
        if came != lengths:
            raise BadInput(
                f"`{name}` must have one value for each row of the recordings, {lengths}, but it has {came}."
            )
        return np.concatenate([np.asarray(each) for each in values])
    whole = np.asarray(values)
    if whole.shape != (sum(lengths),):
        raise BadInput(f"`{name}` must have one value for each of {sum(lengths)} rows, but its shape is {whole.shape}.")
    return whole
