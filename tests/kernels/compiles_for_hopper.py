"""Compile every Triton kernel for an H100/H200 without having one; run by test_fused.py in a process of its own."""

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from zhat.kernels import bending, fused, normalising
from zhat.scenes import fused as drawing

HOPPER = GPUTarget("cuda", 90, 32)


def build(kernel, constants, kinds, warps):
    signature, values = {}, {}
    for i, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name], values[(i,)] = "constexpr", constants[name]
        else:
            signature[name] = kinds[name]
    built = compile(ASTSource(fn=kernel, signature=signature, constexprs=values), HOPPER, {"num_warps": warps})
    assert built.asm["cubin"]
    return built.asm["ptx"]


POINTS = dict.fromkeys(["x", "y", "out", "row_level", "row_gradient", "column_level", "column_gradient"], "*fp32")
NUMBERS = {"n": "i32", "m": "i32", "factor": "fp32", "slope_factor": "fp32", "p": "fp32"}
for kind in range(5):
    shared = {"D": 3, "KIND": kind, "SKIP": kind % 2 == 1, "TILES": 2}
    for kernel, (rows, columns, warps), more in (
        (fused._forward, fused._forward_tile(3), {}),
        (fused._pull, fused._pull_tile(3), {"BY_ROW": True, "BY_COLUMN": kind != 2}),
    ):
        code = build(kernel, shared | more | {"ROWS": rows, "COLUMNS": columns}, POINTS | NUMBERS, warps)
        assert ".f64" not in code, f"{kernel.__name__}, kind {kind}: double precision slipped in"
widths = {"WIDTH": 128, "BLOCK": 128, "ROWS": 64}
halves = {"a": "*bf16", "g": "*bf16", "h": "*bf16", "out": "*bf16", "bias": "*fp32", "sums": "*fp32"}
build(bending._bend, widths, halves | {"rows": "i32", "outputs": "i32", "slope": "fp32"}, 4)
build(bending._unbend, widths, halves | {"rows": "i32", "slope": "fp32"}, 4)
tile = {"ROWS": normalising._ROWS, "COLUMNS": normalising._COLUMNS, "WIDTH": 250, "TILES": 2, "BLOCKS": 64}
numbers = {"rows": "i32", "blocks": "i32", "slope": "fp32", "momentum": "fp32", "eps": "fp32"}
for kernel in (
    normalising._block_moments,
    normalising._merge,
    normalising._normalise,
    normalising._block_sums,
    normalising._restore,
):
    narrow = {"COLUMNS": normalising._NARROW} if kernel is normalising._merge else {}
    code = build(kernel, tile | narrow, dict.fromkeys(kernel.arg_names, "*fp32") | numbers, 4)
    assert ".f64" not in code, f"{kernel.__name__}: double precision slipped in"
splat = {"SEAM": 1e-5, "BITS": 13, "FAR_SIDE": True, "BLOCK": drawing.TRIANGLES}
kinds = {"views": "*fp32", "corners": "*fp32", "keys": "*i32", "count": "i32", "samples": "i32", "levels": "fp32"}
codes = [build(drawing._splat, splat, kinds, drawing.WARPS)]
kinds = dict.fromkeys(("poses", "table", "corners", "soft", "things"), "*fp32") | {"keys": "*i32", "maps": "*i32"}
for kernel, out in ((drawing._object, "*fp32"), (drawing._picture, "*u8")):
    constants = {name: 0.5 for name in kernel.arg_names if name.isupper()}
    constants |= {"SIDE": 64, "CELLS": 64, "BITS": 13, "BLOCK": drawing.PIXELS}
    codes.append(build(kernel, constants, kinds | {"out": out, "n": "i32", "count": "i32"}, drawing.WARPS))
assert not any(".f64" in code for code in codes), "the renderer: double precision slipped in"
print("all kernels compile")
