"""The few loops that decide the speed: the pairwise log-sum-exp, never holding all pairs."""

from zhat.kernels.pairwise import pairwise_logsumexp

__all__ = ["pairwise_logsumexp"]
