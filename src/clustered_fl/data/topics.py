"""Articles of made-up sentences on four topics, in the place of AG News.

Words follow each other as in a first-order Markov chain. Part of the chain is common language,
part belongs to the topic: the same word is then followed by other words, which is what makes one
model for all topics worse than one per topic.
"""

import numpy as np

_TOPICS = 4
_FUNCTION_WORDS = [
    *("the", "a", "of", "to", "in", "and", "on", "for", "that", "with", "as", "at", "is", "by"),
    *("it", "from", "has", "an", "his", "after", "will", "was", "its", "be", "have", "over"),
    *("their", "two", "are", "but", "more", "this", "he", "one", "out", "not", "new", "said"),
]
_COMMON_WORDS, _TOPIC_WORDS = 80, 30
_SUCCESSORS = 6
_TOPIC_SHARE = 0.7
_WORDS_PER_ARTICLE = (20, 45)


def articles(
    rows: tuple[int, int], random: np.random.Generator
) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    """Write training and test articles, equally many of every topic in random order.

    Returns:
        Training texts, topics int64, and the same for the test.
    """
    words = np.array(_FUNCTION_WORDS + _invent(_COMMON_WORDS + _TOPICS * _TOPIC_WORDS, random))
    chains = np.cumsum(_chains(len(words), random), axis=-1)
    parts: list = []
    for count in rows:
        topics = random.permutation(np.arange(count) % _TOPICS)
        parts += [[" ".join(words[row]) for row in _walk(chains, topics, random)], topics]
    return tuple(parts)


def _invent(count: int, random: np.random.Generator) -> list[str]:
    """Distinct pronounceable words of two or three syllables."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    invented: dict[str, None] = {}
    while len(invented) < count:
        invented["".join(random.choice(syllables, random.integers(2, 4)))] = None
    return list(invented)


def _chains(words: int, random: np.random.Generator) -> np.ndarray:
    """Transition probabilities [topic, word, next word]."""
    common = len(_FUNCTION_WORDS) + _COMMON_WORDS
    # Zipf's law: some words are frequent, so that a network has something to learn at once.
    usual = np.where(np.arange(words) < common, 1 / (10 + np.arange(words)), 0)
    shared = _transitions(usual, random)
    chains = []
    for topic in range(_TOPICS):
        liked = usual.copy()
        start = common + topic * _TOPIC_WORDS
        liked[start : start + _TOPIC_WORDS] = 1 / (10 + np.arange(_TOPIC_WORDS))
        own = _transitions(liked, random)
        chains.append(_TOPIC_SHARE * own + (1 - _TOPIC_SHARE) * shared)
    return np.stack(chains)


def _transitions(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Give every word a few successors, drawn by `weights`; rows sum to 1."""
    words = len(weights)
    transitions = np.zeros((words, words))
    for row in transitions:
        next_words = random.choice(words, _SUCCESSORS, replace=False, p=weights / weights.sum())
        row[next_words] = random.dirichlet(np.ones(_SUCCESSORS))
    return transitions


def _walk(
    cumulative: np.ndarray, topics: np.ndarray, random: np.random.Generator
) -> list[np.ndarray]:
    """Word numbers of one article per topic, of random lengths."""
    shortest, longest = _WORDS_PER_ARTICLE
    word = random.integers(0, len(_FUNCTION_WORDS), len(topics))
    walks = [word]
    for _ in range(longest - 1):
        chance = random.random((len(topics), 1))
        # Rounding may leave the last cumulative probability a hair below 1.
        word = (cumulative[topics, word, :-1] < chance).sum(axis=1)
        walks.append(word)
    lengths = random.integers(shortest, longest + 1, len(topics))
    return [row[:length] for row, length in zip(np.stack(walks, 1), lengths, strict=True)]
