"""Stand-ins for the datasets, so that everything runs without network and in minutes.

They have the shapes and the number of classes of what they stand for and are hard enough that
methods differ. Results from them say nothing about the papers; every one of them carries `NOTE`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clustered_fl.data.dataset import Split
from clustered_fl.data.glyphs import digits
from clustered_fl.data.registry import Entry
from clustered_fl.data.shapes import CLASSES as SHAPE_CLASSES
from clustered_fl.data.shapes import shapes
from clustered_fl.data.topics import articles
from clustered_fl.errors import InputError

NOTE = "built-in demo data: shows that the pipeline works, says nothing about the paper"


class StandIn(NamedTuple):
    """How to make one stand-in.

    `make(rows, random)` returns (training rows, training labels, test rows, test labels) for
    rows = (number of training rows, number of test rows); rows are images or texts.
    """

    make: Callable[[tuple[int, int], np.random.Generator], tuple]
    rows: tuple[int, int]
    classes: tuple[str, ...]
    described: str


STAND_INS = {
    "digits": StandIn(
        digits,
        (6000, 1000),
        tuple("0123456789"),
        "scikit-learn's 1,797 handwritten digits (1,497 for training, 300 for tests) enlarged, "
        "shifted and turned to 6,000 and 1,000 images",
    ),
    "shapes": StandIn(
        shapes, (6000, 1000), SHAPE_CLASSES, "6,000 and 1,000 drawings of coloured textured shapes"
    ),
    "topics": StandIn(
        articles,
        (4800, 400),
        ("topic 1", "topic 2", "topic 3", "topic 4"),
        "4,800 and 400 articles of made-up sentences on four topics",
    ),
}


def stand_in(entry: Entry) -> tuple[dict[str, Split], str]:
    """Both splits of the stand-in for `entry`, always the same bytes, and the note they carry.

    Raises:
        InputError: if the dataset has no stand-in.
    """
    if entry.stand_in not in STAND_INS:
        raise InputError(
            f"{entry.name} has no built-in stand-in yet: use the data source `mirror` or `download`"
        )
    chosen = STAND_INS[entry.stand_in]
    random = np.random.default_rng(list(entry.stand_in.encode()))
    train_x, train_y, test_x, test_y = chosen.make(chosen.rows, random)
    splits = {
        "train": Split(train_x, train_y, chosen.classes),
        "test": Split(test_x, test_y, chosen.classes),
    }
    return splits, f"{NOTE} ({chosen.described})"
