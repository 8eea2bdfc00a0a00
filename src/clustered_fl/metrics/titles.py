"""Display names of datasets and networks; records use the names in the configuration.

A name without a title, such as that of an added dataset, is its own title. Titles are here and not
in `config/datasets.yaml`, because notebooks and measures read no configuration.
"""

DATASETS = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "emnist": "EMNIST",
    "femnist": "FEMNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar20": "CIFAR20",
    "cifar100_20": "20 classes of CIFAR-100",
    "ag_news": "AG News",
}
NETWORKS = {"mlp": "MLP", "le_net": "LeNet", "leaf_cnn": "LEAF's CNN"}


def dataset(name: str) -> str:
    """Title of a dataset."""
    return DATASETS.get(name, name)


def network(name: str) -> str:
    """Title of a network."""
    return NETWORKS.get(name, name)
