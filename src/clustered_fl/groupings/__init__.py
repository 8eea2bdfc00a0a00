"""One-shot methods, one module each: which clients are related, found before training.

    Settings
    relate(clients, encoder, settings, seed) -> Relatedness, rows of the table of comparisons

One that can use the network of a run in place of an encoder also has

    profile(folder of the run, dataset, federation, device) -> what `relate` is given as the encoder

The clients' images are where the network is, and without one on the CPU.

The name in the ledger is the module's; `method: {name: one_shot}` trains with what was found.
"""

from clustered_fl.options import module_called

SHARED = ("agreement", "clients", "distances", "signatures")


def grouping_module(name: str) -> str:
    """Dotted name of the module of a one-shot method; an InputError if there is none."""
    return module_called(name, "clustered_fl.groupings", "grouping", SHARED)
