"""Articles of artificial sentences on four topics, a substitute for AG News.

Words follow a first-order Markov chain. Part of it is common to all topics and part is specific to
one, so one model for all topics is worse than one per topic.
"""

import numpy as np

_TOPICS = 4
_FUNCTION_WORDS = [
    *("the", "a", "of", "to", "in", "and", "on", "for", "that", "with", "as", "at", "is", "by"),
    *("it", "from", "has", "an", "his", "after", "will", "was", "its", "be", "have", "over"),
    *("their", "two", "are", "but", "more", "this", "he", "one", "out", "not", "new", "said"),
]
_COMMON_WORDS, _TOPIC_WORDS = 80, 30
_SUCCESSORS, _TOPIC_SHARE = 6, 0.7
# Number of words in an article.
_SHORTEST, _LONGEST = 20, 45


def articles(rows: tuple[int, int], random: np.random.Generator) -> tuple[list | np.ndarray, ...]:
    """Equally many articles of every topic in random order, as `builtin.StandIn` says."""
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
    # Zipf's law: some words are frequent, so that a network learns something at once.
    zipf = 1 / (10 + np.arange(words))
    usual = np.where(np.arange(words) < common, zipf, 0)
    shared, chains = _transitions(usual, random), []
    for start in common + _TOPIC_WORDS * np.arange(_TOPICS):
        liked = usual.copy()
        liked[start : start + _TOPIC_WORDS] = zipf[:_TOPIC_WORDS]
        own = _transitions(liked, random)
        chains.append(_TOPIC_SHARE * own + (1 - _TOPIC_SHARE) * shared)
    return np.stack(chains)


def _transitions(weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Give every word a few successors, drawn by `weights`; rows sum to 1."""
    transitions, chance = np.zeros((len(weights), len(weights))), weights / weights.sum()
    for row in transitions:
        next_words = random.choice(len(weights), _SUCCESSORS, replace=False, p=chance)
        row[next_words] = random.dirichlet(np.ones(_SUCCESSORS))
    return transitions


def _walk(
    cumulative: np.ndarray, topics: np.ndarray, random: np.random.Generator
) -> list[np.ndarray]:
    """Word numbers of one article per topic, of random lengths."""
    walks = [random.integers(0, len(_FUNCTION_WORDS), len(topics))]
    for _ in range(_LONGEST - 1):
        chance = random.random((len(topics), 1))
        # Rounding may leave the last cumulative probability slightly below 1.
        walks.append((cumulative[topics, walks[-1], :-1] < chance).sum(axis=1))
    lengths = random.integers(_SHORTEST, _LONGEST + 1, len(topics))
    return [row[:length] for row, length in zip(np.stack(walks, 1), lengths, strict=True)]
