"""Tokenisation, against a literal twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from clustered_fl.data import text
from clustered_fl.engine import task

TEXTS = st.lists(st.text(st.sampled_from("aAbB1 '.,-\u00e9\n"), max_size=40), max_size=6)


def twin_words(line: str) -> list[str]:
    """Letter by letter: letters and digits build a word; "'" joins only if letters follow."""
    line, found, position = line.lower(), [], 0
    plain = "abcdefghijklmnopqrstuvwxyz0123456789"
    while position < len(line):
        end = position
        while end < len(line) and line[end] in plain:
            end += 1
        if end == position:
            position += 1
            continue
        tail = end + 1
        while (
            end < len(line) and line[end] == "'" and tail < len(line) and line[tail] in plain[:26]
        ):
            tail += 1
        end = tail if tail > end + 1 else end
        found.append(line[position:end])
        position = end
    return found


def test_words_of_an_article():
    line = "Bonds hits No. 699; it #39;s the U.S. team's -- don't ask"
    assert " ".join(text.words(line)) == "bonds hits no 699 it 39 s the u s team's don't ask"


@given(st.text(st.sampled_from("aZ1 '.\u00e9"), max_size=30))
def test_words_like_the_twin(line):
    assert text.words(line) == twin_words(line)


def test_vocabulary_by_frequency_then_alphabet():
    assert text.vocabulary(["b a b", "c a b"]) == ("<pad>", "<unk>", "<eos>", "b", "a", "c")
    assert text.vocabulary(["d c", "b a"])[3:] == ("a", "b", "c", "d")


@given(TEXTS, st.integers(1, 8))
def test_encode_like_the_twin(texts, length):
    known = text.vocabulary(texts[1:])
    ids = text.encode(texts, known, length)
    assert ids.shape == (len(texts), length)
    assert ids.dtype == np.int32
    for row, line in zip(ids.tolist(), texts, strict=True):
        expected = [known.index(w) if w in known else 1 for w in text.words(line)][: length - 1]
        assert row == expected + [2] + [0] * (length - 1 - len(expected))


@given(TEXTS)
def test_smaller_vocabulary_is_a_threshold(texts):
    """The promise of the module: ids >= V read as <unk> equal an encoding with V words."""
    known = text.vocabulary(texts)
    ids = text.encode(texts, known, 8)
    np.testing.assert_array_equal(
        np.where(ids < 5, ids, text.UNKNOWN), text.encode(texts, known[:5], 8)
    )


def test_the_engine_knows_the_same_tokens():
    assert (task.PADDING, task.UNKNOWN) == (text.PAD, text.UNKNOWN)
