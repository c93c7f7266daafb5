"""Files: one reader for each format; none unpickles or runs what a file holds.

`embeddings` is a matrix from any of them, read some rows at a time. Beneath it lie `arrays` (npy, npz, safetensors),
`tables` (csv, tsv, parquet, arrow), `containers` (h5, mat, zarr) and `ids`; beside it `hugging_face`, the models and
tokenizers of a folder. `reading` is the door that all of them go through.
"""

from zhat.files.arrays import Rows, read_npy
from zhat.files.embeddings import Embeddings, embeddings, joined
from zhat.files.hugging_face import local_folder, read_model, read_tokenizer
from zhat.files.tables import BLOCK

__all__ = [
    "Rows",
    "BLOCK",
    "Embeddings",
    "embeddings",
    "joined",
    "read_npy",
    "read_model",
    "read_tokenizer",
    "local_folder",
]
