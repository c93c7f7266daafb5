"""Decoding: which known factors of its rows a matrix of embeddings holds. `decode(h, factors)` says so of files."""

from zhat.decoding.decoded import decode

__all__ = ["decode"]
