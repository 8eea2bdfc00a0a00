"""Built-in substitutes for the datasets, so that everything runs offline and in minutes.

They have the shapes and numbers of classes of the originals, and are hard enough that methods
differ. Results from them say nothing about the papers, and all carry `NOTE`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from clustered_fl.data.dataset import Split
from clustered_fl.data.garments import GARMENTS, garments
from clustered_fl.data.glyphs import digits
from clustered_fl.data.handwriting import CHARACTERS, LETTERS, letters, writers
from clustered_fl.data.registry import Entry
from clustered_fl.data.shapes import CLASSES as SHAPE_CLASSES
from clustered_fl.data.shapes import FINE_CLASSES, fine_shapes, shapes
from clustered_fl.data.topics import articles
from clustered_fl.errors import InputError

NOTE = "built-in demo data: shows that the pipeline works, says nothing about the paper"


class StandIn(NamedTuple):
    """How to make one substitute: `make((training rows, test rows), random)`.

    `make` returns training images uint8 [N, C, H, W] or texts, their labels int64 [N], and the same
    for tests. If rows have owners, `make` divides the rows itself, and also returns the owners'
    names, str [N], of training and of test rows.
    """

    make: Callable[[tuple[int, int], np.random.Generator], tuple]
    rows: tuple[int, int]
    classes: tuple[str, ...]
    described: str


_DIGITS = (
    "scikit-learn's 1,797 handwritten digits (1,497 for training, 300 for tests) enlarged, shifted "
    "and turned to 6,000 and 1,000 images"
)
_SHAPES = "6,000 and 1,000 drawings of coloured textured shapes"
_FINE_SHAPES = "4,000 and 800 drawings of coloured textured shapes in 20 classes"
_LETTERS = "4,700 and 940 characters of matplotlib's fonts, slanted, bent and stretched"
_WRITERS = "5,200 characters of matplotlib's fonts in the hands of 40 made-up writers"
_GARMENTS = "6,000 and 1,000 drawings of patterned garments"
_TOPICS = "4,800 and 400 articles of made-up sentences on four topics"

STAND_INS = {
    "digits": StandIn(digits, (6000, 1000), tuple("0123456789"), _DIGITS),
    "shapes": StandIn(shapes, (6000, 1000), SHAPE_CLASSES, _SHAPES),
    "fine_shapes": StandIn(fine_shapes, (4000, 800), FINE_CLASSES, _FINE_SHAPES),
    "letters": StandIn(letters, (4700, 940), LETTERS, _LETTERS),
    "writers": StandIn(writers, (4680, 520), CHARACTERS, _WRITERS),
    "garments": StandIn(garments, (6000, 1000), GARMENTS, _GARMENTS),
    "topics": StandIn(articles, (4800, 400), tuple(f"topic {n}" for n in range(1, 5)), _TOPICS),
}


def stand_in(entry: Entry) -> tuple[dict[str, Split], str]:
    """Both splits of the substitute for `entry`, the same bytes in every call, and their note.

    Raises: InputError if the dataset has no substitute.
    """
    if not entry.stand_in:
        raise InputError(
            f"{entry.name} has no built-in stand-in yet: use the data source `mirror` or `download`"
        )
    if entry.stand_in not in STAND_INS:
        raise InputError(
            f"{entry.name}: there is no stand-in {entry.stand_in!r}; allowed are "
            f"{', '.join(STAND_INS)}"
        )
    chosen = STAND_INS[entry.stand_in]
    random = np.random.default_rng(list(entry.stand_in.encode()))
    train_x, train_y, test_x, test_y, *owners = chosen.make(chosen.rows, random)
    splits = {
        "train": Split(train_x, train_y, chosen.classes, *owners[:1]),
        "test": Split(test_x, test_y, chosen.classes, *owners[1:]),
    }
    return splits, f"{NOTE} ({chosen.described})"
