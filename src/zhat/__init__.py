"""zhat: did the model recover the latents, and are two models the same up to a linear map?

The rooms, in the order of the sentence "a world draws latents z and shows observations x; a learner turns x into a
representation h; a judge says up to which class of maps h recovers z; a record keeps what was predicted, published and
measured":

`zhat.dgp` · `zhat.scenes` · `zhat.encoders` · `zhat.objectives` · `zhat.train` · `zhat.metrics` · `zhat.theory` ·
`zhat.score` · `zhat.audit` · `zhat.decode` · `zhat.runs` · `zhat.report`

Rooms load when they are first used, so that `import zhat` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zhat import shown
from zhat._version import __version__

if TYPE_CHECKING:
    from zhat import (
        audit,
        datasets,
        dgp,
        encoders,
        equivalence,
        metrics,
        objectives,
        report,
        runs,
        scenes,
        testing,
        theory,
    )
    from zhat.citing import cite
    from zhat.decoding import decode
    from zhat.equivalence import Equivalence
    from zhat.estimator import IdentifiableEncoder
    from zhat.experiment import score
    from zhat.fresh import Fresh
    from zhat.metrics import consistency
    from zhat.progress import Progress
    from zhat.training import load, train

__all__ = [
    "__version__",
    "dgp",
    "datasets",
    "scenes",
    "encoders",
    "objectives",
    "train",
    "load",
    "IdentifiableEncoder",
    "Fresh",
    "Progress",
    "metrics",
    "Equivalence",
    "equivalence",
    "theory",
    "score",
    "consistency",
    "audit",
    "decode",
    "runs",
    "report",
    "testing",
    "cite",
]

_FROM = {
    "consistency": "zhat.metrics",
    "decode": "zhat.decoding",
    "train": "zhat.training",
    "load": "zhat.training",
    "IdentifiableEncoder": "zhat.estimator",
    "Fresh": "zhat.fresh",
    "Progress": "zhat.progress",
    "Equivalence": "zhat.equivalence",
    "score": "zhat.experiment",
    "cite": "zhat.citing",
}


def _renderer() -> Any:
    """What renders results, imported when a result is first to be seen: results lie below it and cannot import it."""
    return import_module("zhat.report.showing")


shown.renderer = _renderer


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(import_module(_FROM[name]), name)
    if name in __all__:
        return import_module(f"zhat.{name}")
    raise AttributeError(f"module 'zhat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
