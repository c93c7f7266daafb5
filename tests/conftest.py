import os

import pytest
import torch
from hypothesis import HealthCheck, settings

# Without a GPU, Triton's kernels run in its interpreter; the switch is read when triton is first imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

settings.register_profile(
    "zhat", deadline=None, max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("zhat")


@pytest.fixture(autouse=True, scope="session")
def _threads():
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20210218)
