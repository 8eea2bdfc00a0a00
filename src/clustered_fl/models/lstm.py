"""Next-word language model for AG News (CFL, section V-C, Fig. 10)."""

from pydantic import PositiveInt
from torch import Tensor, nn


class WordLstm(nn.Module):
    """Embedding, two-layer LSTM, scores over the vocabulary; arguments as of `word_lstm`.

    The paper says "two-layer LSTM" only; the widths are ours, given in the ledger.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=2, batch_first=True)
        self.scores = nn.Linear(hidden, vocabulary)

    def forward(self, words: Tensor) -> Tensor:
        """Scores [batch, length - 1, vocabulary] of the words after the first [batch, length]."""
        states, _ = self.lstm(self.embedding(words[:, :-1]))
        return self.scores(states)


def word_lstm(vocabulary: PositiveInt, embedding: PositiveInt, hidden: PositiveInt) -> WordLstm:
    """The language model of Fig. 10: embedding, two-layer LSTM, scores over the vocabulary.

    Args:
        vocabulary: number of word ids, including padding (0), unknown (1) and end (2).
        embedding: width of the word vectors.
        hidden: width of both LSTM layers.
    """
    return WordLstm(vocabulary, embedding, hidden)
