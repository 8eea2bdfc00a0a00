"""Next-word language model for AG News (CFL, section V-C, Fig. 10)."""

from pydantic import PositiveInt
from torch import Tensor, nn


class WordLstm(nn.Module):
    """Embedding, two-layer LSTM, scores over the vocabulary.

    The paper says "two-layer LSTM" only; widths are ours and stand in the ledger.

    Args:
        vocabulary: number of word ids, including padding (0), unknown (1) and end (2).
        embedding: width of the word vectors.
        hidden: width of both LSTM layers.
    """

    def __init__(self, vocabulary: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, num_layers=2, batch_first=True)
        self.scores = nn.Linear(hidden, vocabulary)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of the word after each of the first length - 1 words.

        Args:
            words: int64 [batch, length], zero-padded.
        Returns:
            [batch, length - 1, vocabulary].
        """
        states, _ = self.lstm(self.embedding(words[:, :-1]))
        return self.scores(states)


def word_lstm(vocabulary: PositiveInt, embedding: PositiveInt, hidden: PositiveInt) -> WordLstm:
    """The language model of Fig. 10; see `WordLstm`."""
    return WordLstm(vocabulary, embedding, hidden)
