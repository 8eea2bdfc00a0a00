"""Every contender on every ground: the runs, groupings and references that a ledger need not write.

    <paper>_<ground>_<contender>           a run
    <paper>_groups_<ground>_<contender>    its grouping, where it has one
    <paper>_<ground>_warm_up               the run whose network describes clients

They become ordinary entries of the ledger, so that nothing else need know of grounds.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from clustered_fl.errors import InputError
from clustered_fl.grounds import Change, Contender, Ground, OneShot
from clustered_fl.schema import Artefact, Claim, Grouping, Ledger, Run
from clustered_fl.strict import Scale, merged

TOLD = "{clusters}"
OF_CLIENTS = ("dataset", "federation")


class Pair(NamedTuple):
    """A contender on a ground, and the names of what it computes; "" for what it does without."""

    ground: str
    contender: str
    run: str
    grouping: str
    warm_up: str
    encoder: str


def pairs(ledger: Ledger) -> Iterator[Pair]:
    """Ground after ground, contenders in their order; who needs the truth stays where there is one.

    Raises:
        InputError: if a contender looks through a network that the ground does not have.
    """
    for ground, about in ledger.grounds.items():
        for contender, who in ledger.contenders.items():
            if about.truth or not who.needs.truth:
                yield _pair(ledger.paper, ground, contender, about, who)


def _pair(paper: str, ground: str, contender: str, about: Ground, who: Contender) -> Pair:
    run, used = f"{paper}_{ground}_{contender}", who.grouping.network if who.grouping else "none"
    if used != "none" and getattr(about, used) is None:
        raise InputError(
            f"contender {contender} needs the {used} of ground {ground}, which has none"
        )
    grouping = f"{paper}_groups_{ground}_{contender}" if who.grouping else ""
    warm_up = f"{paper}_{ground}_warm_up" if used == "warm_up" else ""
    return Pair(
        ground, contender, run, grouping, warm_up, about.encoder if used == "encoder" else ""
    )


def expanded(ledger: Ledger) -> Ledger:
    """The ledger with what its grounds and contenders stand for written out.

    Raises:
        InputError: if a name is taken or not allowed, or something names a ground or a network that
            is not there.
    """
    _check(ledger)
    runs, groupings = dict(ledger.runs), dict(ledger.groupings)
    for name, of in {pair.warm_up: pair.ground for pair in pairs(ledger) if pair.warm_up}.items():
        _add(runs, name, _warm_up(ledger.grounds[of]))
    for pair in pairs(ledger):
        ground, contender = ledger.grounds[pair.ground], ledger.contenders[pair.contender]
        _add(runs, pair.run, _run(pair, ground, contender))
        if contender.grouping:
            _add(groupings, pair.grouping, _grouping(pair, ground, contender, contender.grouping))
    artefacts = {n: _artefact(each, ledger) for n, each in ledger.artefacts.items()}
    claims = {name: _claim(each, ledger) for name, each in ledger.claims.items()}
    changed = {"runs": runs, "groupings": groupings, "artefacts": artefacts, "claims": claims}
    return ledger.model_copy(update=changed)


def _add(entries: dict[str, Any], name: str, entry: Run | Grouping) -> None:
    if name in entries:
        raise InputError(f"{name!r} is taken, and would be something of a contender on a ground")
    entries[name] = entry


def _check(ledger: Ledger) -> None:
    """Grounds have names that claims can read, and those that something names are there."""
    for ground in ledger.grounds:
        if "_" in ground or ground == "groups":
            raise InputError(f"ground {ground!r}: allowed are names without `_`, but not 'groups'")
    named = [(f"contender {n}", g) for n, each in ledger.contenders.items() for g in each.changes]
    for users in (ledger.artefacts, ledger.claims):
        named += [
            (n, g) for n, each in users.items() if each.grounds != "all" for g in each.grounds
        ]
    for user, ground in named:
        if ground not in ledger.grounds:
            known = ", ".join(ledger.grounds) or "none"
            raise InputError(
                f"{user} names ground {ground!r}, which is not there; there are {known}"
            )


def _run(pair: Pair, ground: Ground, contender: Contender) -> Run:
    keys = (*OF_CLIENTS, "model", "training", "rounds", "evaluate_every", "minutes", "seeds")
    method = merged(contender.method, contender.changes.get(pair.ground, Change()).method)
    return Run(
        **{key: getattr(ground, key) for key in keys},
        purpose=f'{contender.title} on the ground "{ground.title}"',
        expected="not in a paper",
        method=told(method, ground.clusters),
        grouping=pair.grouping or None,
        variant=contender.variant,
        scales=merged(ground.scales, told(contender.scales, ground.clusters)),
    )


def _grouping(pair: Pair, ground: Ground, contender: Contender, way: OneShot) -> Grouping:
    method = merged(way.method, contender.changes.get(pair.ground, Change()).grouping)
    return Grouping(
        **{key: getattr(ground, key) for key in OF_CLIENTS},
        purpose=f'Groups of {contender.title} on the ground "{ground.title}"',
        expected="not in a paper",
        encoder=pair.encoder or None,
        profiler=pair.warm_up or None,
        method=told(method, ground.clusters),
        variant=contender.variant,
        minutes=way.minutes,
        seeds=ground.grouping_seeds,
        scales=merged(_of_clients(ground), told(way.scales, ground.clusters)),
    )


def _warm_up(ground: Ground) -> Run:
    about = ground.warm_up
    keys = ("model", "training", "method", "rounds", "minutes")
    return Run(
        **{key: getattr(ground, key) for key in OF_CLIENTS},
        **{key: getattr(about, key) for key in keys},
        purpose=f'Network that describes the clients of the ground "{ground.title}"',
        expected="not in a paper",
        evaluate_every=about.rounds,
        seeds=ground.grouping_seeds,
        scales=merged(_of_clients(ground), about.scales),
    )


def _of_clients(ground: Ground) -> dict[str, dict[str, Any]]:
    """What scales change of the clients alone."""
    return {
        scale: {key: changes[key] for key in OF_CLIENTS if key in changes}
        for scale, changes in ground.scales.items()
    }


def told(settings: Any, clusters: int) -> Any:
    """Settings with the number of clusters in the place of `{clusters}`, however deep."""
    if isinstance(settings, dict):
        return {key: told(value, clusters) for key, value in settings.items()}
    return clusters if settings == TOLD else settings


def _of_grounds(ledger: Ledger, grounds: list[str] | str) -> list[Pair]:
    return [pair for pair in pairs(ledger) if grounds == "all" or pair.ground in grounds]


def _unique(*parts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part if name))


def _records(entry: Artefact | Claim, chosen: list[Pair]) -> dict[str, list[str]]:
    """Runs, warm-ups among them, and groupings of an artefact or a claim, those of grounds too."""
    runs = (name for pair in chosen for name in (pair.run, pair.warm_up))
    groupings = (pair.grouping for pair in chosen)
    found = {"runs": _unique(entry.runs, runs)}
    return found | {"groupings": _unique(entry.groupings, groupings)}


def _claim(claim: Claim, ledger: Ledger) -> Claim:
    """A claim with everything of its grounds."""
    return claim.model_copy(update=_records(claim, _of_grounds(ledger, claim.grounds)))


def _artefact(artefact: Artefact, ledger: Ledger) -> Artefact:
    """An artefact with everything of its grounds, and its notebook told what that is."""
    chosen = _of_grounds(ledger, artefact.grounds)
    if not chosen:
        return artefact
    changed: dict[str, Any] = {"parameters": _told(ledger, chosen) | artefact.parameters}
    if artefact.measured:
        changed["encoders"] = _unique(artefact.encoders, (pair.encoder for pair in chosen))
        changed |= _records(artefact, chosen)
    return artefact.model_copy(update=changed)


def shown(ledger: Ledger, scale: Scale) -> dict[str, Artefact]:
    """The artefacts that can be made at a scale: not those of grounds where nobody trains there."""
    empty = {name for name, ground in ledger.grounds.items() if not ground.seeds.get(scale)}
    return {
        name: artefact
        for name, artefact in ledger.artefacts.items()
        if artefact.grounds in ("all", []) or not set(artefact.grounds) <= empty
    }


def _told(ledger: Ledger, chosen: list[Pair]) -> dict[str, Any]:
    """What a notebook is told of grounds, contenders and their pairs, ready for JSON."""
    about = ("title", "differs", "truth", "clusters")
    who = ("title", "citation", "needs")
    rows = []
    for pair in chosen:
        traffic = ledger.contenders[pair.contender].traffic.model_dump()
        rows.append(pair._asdict() | told(traffic, ledger.grounds[pair.ground].clusters))
    grounds = {
        n: ledger.grounds[n].model_dump(include=set(about))
        for n in _unique(p.ground for p in chosen)
    }
    names = _unique(pair.contender for pair in chosen)
    contenders = {n: ledger.contenders[n].model_dump(include=set(who)) for n in names}
    return {"grounds": grounds, "contenders": contenders, "rows": rows}


class Hosts:
    """Who keeps the file of a federation: contenders on one ground have the same clients.

    Args:
        ledgers: expanded.
        results: folder of results.
    """

    def __init__(self, ledgers: Iterable[Ledger], results: str) -> None:
        self._results = results
        self._host: dict[str, str] = {}
        for ledger in ledgers:
            first: dict[str, str] = {}
            for pair in pairs(ledger):
                host = first.setdefault(pair.ground, pair.run)
                own = (name for name in (pair.run, pair.grouping, pair.warm_up) if name)
                self._host |= dict.fromkeys(own, host)

    def federation(self, wildcards: Any) -> str:
        """The federation of a run or a grouping; that of a ground is its first contender's."""
        host = self._host.get(wildcards.name, wildcards.name)
        return f"{self._results}/federations/{host}/seed{wildcards.seed}.safetensors"
