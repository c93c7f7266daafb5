import pickle

import pytest

from zhat import errors

RAISED = [
    errors.BadInput("an x was expected, a y came."),
    errors.TooFewRows("too few", needed=40),
    errors.UnknownName("row", "T9", ["T1", "T2"]),
    errors.CorruptRun("damaged"),
    errors.NothingFinished("empty"),
    errors.MissingData("nowhere", wanted="a file"),
    errors.MissingExtra("dask", "dask", "a cluster"),
    errors.RunFailed("no"),
    errors.Diverged("seed 3"),
]


def test_every_error_is_tried():
    known = {e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.ZhatError)}
    assert {type(e) for e in RAISED} == known - {errors.ZhatError}


@pytest.mark.parametrize("error", RAISED, ids=lambda e: type(e).__name__)
def test_errors_come_back_whole_from_another_process(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
