"""The ledgers at one scale, as the workflow's rules ask for them.

Every method that takes `wildcards` is an input or parameter function of a rule. Parameters that
change rerun exactly the jobs that use them: a run's parameters are its resolved configuration and
the fingerprint of the code that computes it.
"""

import json
from pathlib import Path
from typing import Any

from clustered_fl.claims.papers import MODULES
from clustered_fl.data.partitions import partition_module
from clustered_fl.drifts import Drifts
from clustered_fl.errors import InputError
from clustered_fl.fingerprint import fingerprint, imported_by
from clustered_fl.groupings import grouping_module
from clustered_fl.ledger import (
    load_ledger,
    resolved_encoders,
    resolved_groupings,
    resolved_runs,
)
from clustered_fl.methods import method_module
from clustered_fl.models import model_module
from clustered_fl.same_ground import Hosts, shown
from clustered_fl.schema import Artefact, Ledger, Study
from clustered_fl.settings import Settings

FORMATS = {"figure": ("png", "pdf", "svg", "csv"), "table": ("csv", "md", "tex")}
RECORD_FILES = ("record.json", "cost.json", "rounds.parquet", "models.safetensors")
GROUPING_FILES = ("record.json", "cost.json", "relatedness.safetensors", "comparisons.parquet")
ENCODER_FILES = ("record.json", "cost.json", "encoder.safetensors", "pictures.safetensors")


class Plan:
    """What there is to compute for one configuration of the workflow.

    Args:
        settings: checked configuration.
        ledgers: folder with one `<paper>.yaml` per paper.
    """

    def __init__(self, settings: Settings, ledgers: Path) -> None:
        self.settings = settings
        self.results = f"results/{settings.scale}"
        self.data = f"data/{settings.data_source}"
        self.ledgers = {paper: load_ledger(ledgers / f"{paper}.yaml") for paper in settings.papers}
        self.encoders: dict[str, dict[str, Any]] = {}
        self.groupings: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.studies: dict[str, Study] = {}
        self.artefacts: dict[str, Artefact] = {}
        for ledger in self.ledgers.values():
            self._add(ledger)
        for run in self.runs.values():
            _code_of(run["config"])
        for name in self.clients:
            self._partition(name)
        self.drifts = Drifts(self.clients, self.data)
        self.hosts = Hosts(self.ledgers.values(), self.results)

    def _add(self, ledger: Ledger) -> None:
        self.encoders |= resolved_encoders(ledger, self.settings.scale)
        self.groupings |= resolved_groupings(ledger, self.settings.scale)
        self.runs |= resolved_runs(ledger, self.settings.scale)
        self.studies |= ledger.studies
        self.artefacts |= shown(ledger, self.settings.scale)

    def require_notebooks(self) -> None:
        """Refuse a ledger that names a notebook which is not there, before anything is trained.

        Raises:
            InputError: naming the artefact and the notebook.
        """
        for name, artefact in self.artefacts.items():
            path = Path("notebooks", artefact.notebook)
            if not path.is_file():
                raise InputError(f"{name} names the notebook {path}, which is not there")

    def seeds(self, run: str) -> list[int]:
        """Seeds of a run at this scale, cut to the configured number."""
        return self.runs[run]["seeds"][: self.settings.seeds]

    def members(self, family: str) -> list[str]:
        """Runs that one entry of the ledger stands for: itself, or one per value of its sweep."""
        return [name for name, run in self.runs.items() if run["family"] == family]

    def folders(self, families: list[str]) -> dict[str, dict[int, str]]:
        """Record folder of every seed of every run of these families."""
        runs = [name for family in families for name in self.members(family)]
        return {
            run: {seed: f"{self.results}/runs/{run}/seed{seed}" for seed in self.seeds(run)}
            for run in runs
        }

    def evidence(self, ledger: Ledger) -> dict[str, dict[str, dict[int, str]]]:
        """Record folders that claims are measured on: family -> run or grouping -> seed."""
        runs = {family: self.folders([family]) for family in ledger.runs}
        return runs | {name: self.grouping_folders([name]) for name in ledger.groupings}

    def records(self, families: list[str]) -> list[str]:
        """Files that must exist before these families can be read."""
        folders = self.folders(families).values()
        return [
            f"{path}/{name}"
            for seeds in folders
            for path in seeds.values()
            for name in RECORD_FILES
        ]

    def study_files(self, names: list[str]) -> list[str]:
        """Records of these studies; their tables lie beside them."""
        return [f"{self.results}/studies/{name}/record.json" for name in names]

    @property
    def clients(self) -> dict[str, dict[str, Any]]:
        """Everything that has a federation, runs and groupings: name -> resolved entry."""
        return self.runs | self.groupings

    def dataset_of(self, wildcards: Any) -> str:
        """Canonical arrays that a run, a grouping or an encoder is computed from."""
        if wildcards.name in self.encoders:
            return f"{self.data}/{self.encoders[wildcards.name]['dataset']}.safetensors"
        return self.drifts.dataset_of(self.clients[wildcards.name]["config"], wildcards)

    def federation_settings(self, wildcards: Any) -> str:
        """The federation of a run or a grouping, as JSON."""
        return json.dumps(self.clients[wildcards.name]["config"]["federation"], sort_keys=True)

    def federation_code(self, wildcards: Any) -> str:
        """Fingerprint of the partition of a run or a grouping."""
        return fingerprint("clustered_fl.data.partitions", self._partition(wildcards.name))

    def _partition(self, name: str) -> str:
        return partition_module(self.clients[name]["config"]["federation"].get("kind", ""))

    def encoder_config(self, wildcards: Any) -> str:
        """The resolved encoder, as JSON."""
        return json.dumps(self.encoders[wildcards.name], sort_keys=True)

    def encoder_files(self, names: list[str]) -> list[str]:
        """What these encoders leave."""
        folders = [f"{self.results}/encoders/{name}" for name in names]
        return [f"{folder}/{name}" for folder in folders for name in ENCODER_FILES]

    def encoder_of(self, wildcards: Any) -> str:
        """Folder of a grouping's encoder or profiler, "" if it needs neither."""
        config = self.groupings[wildcards.name]["config"]
        if config["profiler"]:
            return f"{self.results}/runs/{config['profiler']}/seed{wildcards.seed}"
        return f"{self.results}/encoders/{config['encoder']}" if config["encoder"] else ""

    def encoder_record(self, wildcards: Any) -> list[str]:
        """The record of a grouping's encoder or profiler, if it needs one."""
        return [f"{folder}/record.json" for folder in [self.encoder_of(wildcards)] if folder]

    def grouping_config(self, wildcards: Any) -> str:
        """The resolved grouping with its seed, as JSON."""
        config = self.groupings[wildcards.name]["config"] | {"seed": int(wildcards.seed)}
        return json.dumps(config, sort_keys=True)

    def grouping_code(self, wildcards: Any) -> str:
        """Fingerprint of what finds a grouping; a profiler's network is built anew."""
        config = self.groupings[wildcards.name]["config"]
        used = ["clustered_fl.clustering", grouping_module(config["method"].get("name", ""))]
        if config["profiler"]:
            used.append(model_module(self.runs[config["profiler"]]["config"]["model"]["name"]))
        return fingerprint(*used)

    def grouping_folders(self, names: list[str]) -> dict[str, dict[int, str]]:
        """Folder of every seed of these groupings."""
        return {
            name: {seed: f"{self.results}/groupings/{name}/seed{seed}" for seed in seeds}
            for name in names
            for seeds in [self.groupings[name]["seeds"][: self.settings.seeds]]
        }

    def grouping_files(self, names: list[str]) -> list[str]:
        """What these groupings leave, all seeds."""
        folders = self.grouping_folders(names).values()
        paths = [path for seeds in folders for path in seeds.values()]
        return [f"{path}/{name}" for path in paths for name in GROUPING_FILES]

    def grouping_of(self, wildcards: Any) -> str:
        """Folder of a run's grouping, "" if it averages by none."""
        grouping = self._config(wildcards)["grouping"]
        return f"{self.results}/groupings/{grouping}/seed{wildcards.seed}" if grouping else ""

    def grouping_record(self, wildcards: Any) -> list[str]:
        """The record of a run's grouping, if it averages by one."""
        return [f"{folder}/record.json" for folder in [self.grouping_of(wildcards)] if folder]

    def run_config(self, wildcards: Any) -> str:
        """The resolved run with its seed, as JSON."""
        config = self._config(wildcards) | {"seed": int(wildcards.seed)}
        return json.dumps(config, sort_keys=True)

    def run_code(self, wildcards: Any) -> str:
        """Fingerprint of what computes a run: the run loop, its method and its network."""
        return fingerprint("clustered_fl.runs", *_code_of(self._config(wildcards)))

    def _config(self, wildcards: Any) -> dict[str, Any]:
        if wildcards.name not in self.runs:
            raise InputError(
                f"unknown run {wildcards.name!r}; the ledger has {', '.join(self.runs)}"
            )
        return self.runs[wildcards.name]["config"]

    def study_settings(self, wildcards: Any) -> str:
        """Settings of a study at this scale, as JSON."""
        study = self.studies[wildcards.study]
        return json.dumps(
            study.settings | study.scales.get(self.settings.scale, {}), sort_keys=True
        )

    def study_function(self, wildcards: Any) -> str:
        """module.function of a study below clustered_fl.theory."""
        return self.studies[wildcards.study].function

    def artefact_inputs(self, wildcards: Any) -> list[str]:
        """Everything that an artefact's notebook reads."""
        artefact = self.artefacts[wildcards.artefact]
        files = self.records(artefact.runs) + self.study_files(artefact.studies)
        files += self.grouping_files(artefact.groupings)
        return files + self.encoder_files(artefact.encoders)

    def artefact_notebook(self, wildcards: Any) -> str:
        """Source of an artefact's notebook."""
        return f"notebooks/{self.artefacts[wildcards.artefact].notebook}"

    def artefact_code(self, wildcards: Any) -> str:
        """Fingerprint of everything first-party that the notebook imports."""
        cells = json.loads(Path(self.artefact_notebook(wildcards)).read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        return fingerprint("clustered_fl.notebook", *imported_by("\n".join(code)))

    def artefact_parameters(self, wildcards: Any) -> str:
        """Values of the notebook's parameters cell, as JSON."""
        artefact = self.artefacts[wildcards.artefact]
        values = {
            "artefact": wildcards.artefact,
            "runs": {family: self.folders([family]) for family in artefact.runs},
            "studies": {name: f"{self.results}/studies/{name}" for name in artefact.studies},
            "scale": self.settings.scale,
            "source": self.settings.data_source,
        }
        if artefact.groupings:
            values["groupings"] = self.grouping_folders(artefact.groupings)
        if artefact.encoders:
            folders = {name: f"{self.results}/encoders/{name}" for name in artefact.encoders}
            values["encoders"] = folders
        return json.dumps(values | artefact.parameters, sort_keys=True)

    def artefact_caption(self, wildcards: Any) -> str:
        """Title, caption and place in the paper, for the workflow's report."""
        artefact = self.artefacts[wildcards.artefact]
        return f"**{artefact.title}** ({artefact.where}). {artefact.caption}"

    def named(self, kind: str) -> list[str]:
        """Names of all artefacts of one kind."""
        return [name for name, artefact in self.artefacts.items() if artefact.kind == kind]

    def artefact_files(self, name: str) -> list[str]:
        """What an artefact leaves: its page and its figure or table in every format."""
        suffixes = ("html", *FORMATS[self.artefacts[name].kind])
        return [f"{self.results}/artefacts/{name}/{name}.{suffix}" for suffix in suffixes]

    def settings_json(self) -> str:
        """The configuration, for steps that read the ledgers themselves."""
        return self.settings.model_dump_json(exclude_none=True)

    def claim_modules(self) -> list[str]:
        """Modules whose code decides verdicts."""
        named = [f"clustered_fl.claims.{p}.{m}" for p in self.ledgers for m in MODULES[p]]
        return ["clustered_fl.claims.verdicts", *named]

    def paper_files(self, paper: str) -> list[str]:
        """Every table and figure of one paper."""
        own = (name for name in self.ledgers[paper].artefacts if name in self.artefacts)
        return [file for name in own for file in self.artefact_files(name)]

    def study_code(self, wildcards: Any) -> str:
        """Fingerprint of a study's module."""
        module = self.studies[wildcards.study].function.rpartition(".")[0]
        return fingerprint(f"clustered_fl.theory.{module}")


def _code_of(config: dict[str, Any]) -> tuple[str, str]:
    """Modules of a run's method and network.

    Raises:
        InputError: if the run names none or one that there is not.
    """
    for part in ("method", "model"):
        if "name" not in config[part]:
            raise InputError(f"the {part} of the run {config['run']} needs a name")
    return method_module(config["method"]["name"]), model_module(config["model"]["name"])
