"""Articles as token ids, for next-word prediction (CFL, Fig. 10).

The paper states neither vocabulary nor tokenisation. Here text is lower-cased, words are matched by
a regular expression, and words of the training rows are numbered by decreasing frequency. A model
with a vocabulary of V tokens reads an id >= V as `UNKNOWN`.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

PAD, UNKNOWN, END = 0, 1, 2
SPECIAL = ("<pad>", "<unk>", "<eos>")
# Remains of markup in the published articles ("#39;s", "lt", "quot") are kept, because the paper
# mentions no cleaning, and perplexity depends on it.
_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")


def words(text: str) -> list[str]:
    """Lower-case words of a text; punctuation separates words and is dropped."""
    return _WORD.findall(text.lower())


def vocabulary(texts: Sequence[str]) -> tuple[str, ...]:
    """Special tokens, then every word of `texts` by decreasing frequency (ties alphabetically)."""
    counts = Counter(word for text in texts for word in words(text))
    return SPECIAL + tuple(sorted(counts, key=lambda word: (-counts[word], word)))


def encode(texts: Sequence[str], known: Sequence[str], length: int) -> np.ndarray:
    """Token ids int32 [N, length], cut so that `<eos>` fits and padded; `<unk>` if not `known`."""
    number = {word: index for index, word in enumerate(known)}
    ids = np.full((len(texts), length), PAD, np.int32)
    for row, text in zip(ids, texts, strict=True):
        found = [number.get(word, UNKNOWN) for word in words(text)[: length - 1]] + [END]
        row[: len(found)] = found
    return ids
