"""Decoding: which known factors of its rows a matrix of embeddings holds, from arrays or from files."""

from zhat.decoding.decoded import decode

__all__ = ["decode"]
