"""What a learner minimises: any callable `(h, batch) -> scalar`; an `nn.Module` if it owns parameters."""

from zhat.objectives.adapters import (
    from_arrays,
    from_contrastive,
    from_huggingface,
    from_log_bilinear,
    from_metric_learning,
    from_noise_contrastive,
    from_sklearn,
    from_torch,
)
from zhat.objectives.canonical import AllLabels, Candidates, Canonical, InBatch, InBatchSoftmax, Vocabulary
from zhat.objectives.classification import CrossEntropy, InstanceDiscrimination
from zhat.objectives.contrastive import Dot, InfoNCE, NegativeLp
from zhat.objectives.each import Each
from zhat.objectives.language import NegativeSampling, NextWord, WordSoftmax
from zhat.objectives.learned import LearnedSimilarity
from zhat.objectives.objective import Objective
from zhat.objectives.oracle import Supervised
from zhat.objectives.variational import SlowVAE

__all__ = [
    "Objective",
    "InfoNCE",
    "Dot",
    "NegativeLp",
    "LearnedSimilarity",
    "CrossEntropy",
    "InstanceDiscrimination",
    "Supervised",
    "SlowVAE",
    "InBatchSoftmax",
    "WordSoftmax",
    "NegativeSampling",
    "NextWord",
    "Canonical",
    "Candidates",
    "AllLabels",
    "InBatch",
    "Vocabulary",
    "Each",
    "from_arrays",
    "from_torch",
    "from_sklearn",
    "from_huggingface",
    "from_log_bilinear",
    "from_noise_contrastive",
    "from_metric_learning",
    "from_contrastive",
]
