"""An encoder for your arrays, in scikit-learn's manners: fit, transform, pipelines, cloning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from zhat import _checks
from zhat.datasets import Arrays, Augmented, GivenPairs, NextRow, SameLabel
from zhat.dgp import Process, Space, Sphere
from zhat.encoders import mlp
from zhat.errors import BadInput, UnknownName
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, InfoNCE, InstanceDiscrimination, NegativeLp
from zhat.progress import Progress
from zhat.training import train

OBJECTIVES = ("infonce", "lp", "instance", "cross-entropy")
PAIRS = ("auto", "next row", "same label", "given", "none")
_ROWS = 2**16  # transformed at a time


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

    Args:
        n_components: dimension k of the representation. A sphere in k dimensions holds k - 1 of them.
        objective: one of the above.
        pairs: one of the above; "auto" is "given" where `fit` gets pairs, "none" for "instance" and "cross-entropy",
            else "next row".
        p: of "lp".
        temperature: of the objective; None takes 0.1 on the sphere and 1 elsewhere.
        widths: hidden widths of the network.
        onto: where the representation lands: a `Space` such as `Sphere(3)` or `Box(3)`, None for all of R^k, "auto" for
            what the objective is made for.
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
        onto: str | Space | None = "auto",
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
        self.onto = onto
        self.steps = steps
        self.batch = batch
        self.lr = lr
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, pairs: Any = None) -> IdentifiableEncoder:
        """Train on rows `(n, m)`.

        Args:
            X: observations; in time order for pairs="next row".
            y: labels, for pairs="same label" and objective="cross-entropy"; otherwise not looked at.
            pairs: positives of the rows, `(n, m)`, or pairs of row numbers, `(p, 2)`, whole numbers.
        """
        k = _checks.count(self.n_components, "n_components")
        how = self._how(pairs)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        mean, scale = X.mean(0), X.std(0)
        moved = scale > 1e-12 * np.abs(X).max(0)
        self.mean_, self.scale_ = mean, np.where(moved, scale, 1.0)
        rows = self._standard(X)
        process = self._process(how, rows, y, pairs)
        objective, space = self._objective(k, process)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        encoder = mlp(rows.shape[1], k, widths=tuple(self.widths), onto=space, seed=seed)
        batch = max(2, min(_checks.count(self.batch, "batch"), len(rows)))
        settings: dict[str, Any] = {"steps": self.steps, "batch": batch, "lr": self.lr, "seed": seed}
        if self.verbose:
            with Progress("fitting") as progress:
                run = train(encoder, process, objective, device=self.device, progress=progress, **settings)
        else:
            run = train(encoder, process, objective, device=self.device, **settings)
        self.encoder_ = run.encoder.cpu().double()
        self.losses_ = np.array(run.curves[0].loss)
        self._n_features_out = k
        return self

    def transform(self, X: Any) -> Any:
        """The representation of rows, `(n, m) -> (n, n_components)`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        rows = torch.from_numpy(self._standard(X))
        with torch.no_grad():
            return torch.cat([self.encoder_(some) for some in rows.split(_ROWS)]).numpy()

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

    def _process(self, how: str, rows: Any, y: Any, pairs: Any) -> Process:
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
        if len(rows) < 3:
            raise BadInput("pairs='next row' needs at least 3 rows, n_samples=2 came.")
        return NextRow(rows)

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
