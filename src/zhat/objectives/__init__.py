"""What a learner minimises: any callable `(h, batch) -> scalar`; an `nn.Module` if it owns parameters."""

from zhat.objectives.classification import CrossEntropy, InstanceDiscrimination
from zhat.objectives.contrastive import Dot, InfoNCE, NegativeLp
from zhat.objectives.oracle import Supervised

__all__ = ["InfoNCE", "Dot", "NegativeLp", "CrossEntropy", "InstanceDiscrimination", "Supervised"]
