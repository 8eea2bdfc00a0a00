"""A grouping leaves five files, of which runs read one; what does not fit together is refused."""

import json
import shutil
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from refusals import told

from clustered_fl.cli import main
from clustered_fl.data import dataset as datasets
from clustered_fl.data import federation as federations
from clustered_fl.data.partitions import build_federation
from clustered_fl.encoders.storage import load_encoder
from clustered_fl.encoders.training import Reconstruction, embed
from clustered_fl.engine import checkpoint
from clustered_fl.errors import InputError
from clustered_fl.files import digest, read_json
from clustered_fl.groupings import flt, pca_kmeans_hc, signatures
from clustered_fl.groupings.clients import clients_of
from clustered_fl.jobs import train as runs
from clustered_fl.jobs.encode import execute as pretrain
from clustered_fl.jobs.group import execute
from clustered_fl.ledger.reading import load_ledger
from clustered_fl.ledger.resolution import resolved_encoders, resolved_groupings, resolved_runs
from clustered_fl.methods.one_shot import alike
from clustered_fl.records import reading as records
from clustered_fl.records import relatedness, seal
from clustered_fl.records.reading import Origin
from clustered_fl.workflow import kinds

FEDERATION = {"kind": "disjoint_labels", "clients": 12, "groups": 3, "labels": 2, "shuffled": True}
FEDERATION |= {"newcomers": 1, "changed": 1}
PCA = {"name": "pca_kmeans_hc", "k": 2, "dimensions": 4, "gamma": 0.4}
FLT = {"name": "flt", "k": 2, "distance": "matching", "gamma": 0.02, "again": True}
FLT |= {"manifold": {"neighbours": 4, "dimensions": 6}, "tuning_epochs": 1}
FLT |= {"compare": {"seeds": 2, "k": [1], "gammas": [0.02, 1.0]}}
FILES = (*kinds.FILES["grouping"], relatedness.SIGNATURES)
SAME = tuple(file for file in FILES if file != records.COST)
ORIGIN = Origin("0123", "4567")


def configured(method, **changes):
    config = {"name": "tiny", "paper": "flt", "scale": "demo", "seed": 3, "dataset": "mnist"}
    return config | {"federation": FEDERATION, "encoder": None, "method": method} | changes


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Six blurred things, clients with two of them each, and an encoder that has seen them."""
    folder, rng = tmp_path_factory.mktemp("inputs"), np.random.default_rng(0)
    things = rng.integers(0, 256, (6, 1, 4, 4)).repeat(2, axis=2).repeat(2, axis=3)
    y = np.concatenate([rng.permutation(np.arange(240) % 6), np.arange(36) % 6])
    x = (0.9 * things[y] + 0.1 * rng.integers(0, 256, (len(y), 1, 8, 8))).astype(np.uint8)
    data = datasets.build("mnist", "builtin", x, y, 240, tuple("abcdef"))
    datasets.save(data, folder / "data.safetensors")
    built = build_federation(data, 3, **FEDERATION)
    federations.save(built, folder / "federation.safetensors", data.digest)
    encoder = {"name": "e", "model": {"name": "conv_autoencoder", "code": 6}}
    encoder["training"] = {"epochs": 2, "batch_size": 16}
    where = {"out": folder / "encoder", "saved": folder / "checkpoint"}
    how = {"origin": ORIGIN, "device": "cpu", "tell": lambda _: None}
    pretrain(encoder, folder / "data.safetensors", **where, **how)
    files = ("data", "federation")
    return {name: folder / f"{name}.safetensors" for name in files} | {
        "encoder": folder / "encoder"
    }


class Flat:
    """Stands for UMAP, which takes long to load: it leaves signatures where they are."""

    def __init__(self, settings, seed):
        self.settings, self.seed = settings, seed

    def fit_transform(self, points):
        return points[:, : self.settings.dimensions] + self.seed


@pytest.fixture(autouse=True)
def no_umap(monkeypatch):
    monkeypatch.setattr(signatures, "_umap", Flat)


def group(inputs, folder, method, **changes):
    """Find a grouping below `folder` and return its lines of progress."""
    lines = []
    where = {"out": folder, "saved": folder.parent / f"{folder.name}.safetensors"}
    how = {"origin": ORIGIN, "device": "cpu", "tell": lines.append}
    execute(configured(method, **changes), **inputs, **where, **how)
    assert lines.pop(0).startswith("on ")
    return lines


@pytest.fixture(scope="module")
def found(inputs, tmp_path_factory):
    """Folder of a grouping by FLT."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "_umap", Flat)
        folder = tmp_path_factory.mktemp("flt")
        group(inputs, folder, FLT)
        return folder


# ---- What a grouping leaves ---------------------------------------------------------------------


def arrays(inputs):
    data, (federation, _) = datasets.load(inputs["data"]), federations.load(inputs["federation"])
    return data, federation


def test_five_files_are_left(found, inputs, tmp_path):
    assert sorted(path.name for path in found.iterdir()) == sorted(FILES)
    (line,) = group(inputs, tmp_path, PCA | {"case": "groups", "groups": 2})
    assert line.startswith("2 groups of 9 clients, {'ari': ")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)


def test_the_record_says_what_was_found_in_what(found, inputs):
    record, (data, federation) = records.load_record(found), arrays(inputs)
    config = json.loads(json.dumps(configured(FLT)))
    assert (record["config"], record["config_digest"]) == (config, digest(config))
    assert (record["code"], record["identity"], record["data"]) == (*ORIGIN, data.described)
    assert record["federation_digest"] == federations.load(inputs["federation"])[1]
    assert record["true_groups"] == federation.groups[:9].tolist()
    assert record["true_newcomers"] == federation.groups[9:].tolist()
    assert len(record["placed"]) == 6
    assert record["agreement"]["ari"] == 1.0
    assert record["agreement"]["recall"] == 1.0
    assert len(set(zip(record["groups"], record["true_groups"], strict=True))) == 3
    placed = [record["true_groups"][host] for host in record["placed"]]
    assert placed == record["true_newcomers"]


def test_what_is_written_is_what_the_method_finds(found, inputs):
    data, federation = arrays(inputs)
    options = {name: value for name, value in FLT.items() if name != "name"}
    options["manifold"] = signatures.Manifold(**options["manifold"])
    options["compare"] = flt.Comparison(2, (1,), (0.02, 1.0))
    clients, encoder = clients_of(data, federation), load_encoder(inputs["encoder"])
    expected, rows = flt.relate(clients, encoder, flt.Settings(**options), 3)
    written = relatedness.load(found)
    for name, array in vars(expected).items():
        np.testing.assert_array_equal(getattr(written, name), array)
        assert getattr(written, name).dtype == array.dtype
    assert (written.related.dtype, written.groups.dtype) == (np.uint8, np.int64)
    assert (written.related.shape, written.later.shape) == ((9, 9), (15, 15))
    compared = pd.read_parquet(found / "comparisons.parquet")
    pd.testing.assert_frame_equal(compared, pd.DataFrame(rows))
    assert len(compared) == 2 * 2 * 2 * 2


def test_each_client_is_found_again_in_the_group_where_its_data_are_now(found, inputs):
    _, federation = arrays(inputs)
    later = relatedness.load(found).later
    gone = federation.replaces[federation.replaces >= 0]
    for one, other in np.ndindex(15, 15):
        away = one in gone or other in gone
        same = federation.groups[one] == federation.groups[other]
        assert later[one, other] == (one == other or (same and not away))


def test_a_grouping_without_encoder_needs_none(inputs, tmp_path):
    data, federation = arrays(inputs)
    group(inputs | {"encoder": None}, tmp_path, PCA)
    options = {name: value for name, value in PCA.items() if name != "name"}
    settings = pca_kmeans_hc.Settings(**options)
    expected, _ = pca_kmeans_hc.relate(clients_of(data, federation), None, settings, 3)
    np.testing.assert_array_equal(relatedness.load(tmp_path).related, expected.related)
    assert relatedness.load(tmp_path).later.size == 0


@pytest.mark.parametrize("method", [PCA, FLT], ids=lambda method: method["name"])
def test_found_twice_it_is_the_same_bytes_whatever_was_before(inputs, tmp_path, method):
    contents = []
    for name in ("one", "two"):
        group(inputs, tmp_path / name, method)
        contents.append([(tmp_path / name / file).read_bytes() for file in SAME])
        torch.manual_seed(9)
        np.random.default_rng(9).random(9)
    assert contents[0] == contents[1]
    group(inputs, tmp_path / "other", method, seed=4)
    sent = relatedness.SIGNATURES
    assert (tmp_path / "other" / sent).read_bytes() != (tmp_path / "one" / sent).read_bytes()


@pytest.mark.parametrize("file", FILES)
def test_a_grouping_that_cannot_be_finished_is_not_there(inputs, tmp_path, file):
    (tmp_path / file / "in the way").mkdir(parents=True)
    with pytest.raises(InputError, match=f"cannot write .*{file}"):
        group(inputs, tmp_path, PCA)
    assert not (tmp_path / "record.json").is_file()
    assert not list(tmp_path.rglob("*.part"))


def save(found, folder):
    """Leave a grouping with a record that says nothing else."""
    relatedness.save(found, folder)
    seal.write(folder, {}, {}, [relatedness.FILE, relatedness.SIGNATURES])


@pytest.mark.parametrize("file", [relatedness.FILE, relatedness.SIGNATURES])
@pytest.mark.parametrize("kept", [0, 30, -10])
def test_a_damaged_relatedness_is_told(found, tmp_path, file, kept):
    save(relatedness.load(found), tmp_path)
    (tmp_path / file).write_bytes((found / file).read_bytes()[:kept])
    with pytest.raises(InputError) as caught:
        relatedness.load(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / file} is damaged (its content is not")
    assert not (tmp_path / "record.json").exists()


def test_who_is_related_can_be_read_without_the_signatures(found, tmp_path):
    whole = relatedness.load(found)
    save(whole, tmp_path)
    (tmp_path / relatedness.SIGNATURES).unlink()
    part = relatedness.load(tmp_path, signatures=False)
    for name in ("related", "groups", "placed", "later"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    assert part.signatures.size == part.points.size == part.distances.size == 0


def test_points_that_are_the_signatures_are_kept_once(found, tmp_path):
    whole = relatedness.load(found)
    assert not np.array_equal(whole.points, whole.signatures[:9])
    save(replace(whole, points=whole.signatures[:9]), tmp_path)
    size = (tmp_path / relatedness.SIGNATURES).stat().st_size
    assert size < (found / relatedness.SIGNATURES).stat().st_size
    np.testing.assert_array_equal(relatedness.load(tmp_path).points, whole.signatures[:9])


# ---- Interruptions -------------------------------------------------------------------------------

TUNED = FLT | {"tuning": "independent", "compare": {"seeds": 1, "k": [1], "gammas": [1.0]}}
CLIENTS_IN_ALL = 15


@pytest.fixture
def kept_at_once(monkeypatch):
    monkeypatch.setattr(checkpoint, "SAVE_SECONDS", 0)


@pytest.fixture
def trainings(monkeypatch):
    """Grows by one for every epoch of fine-tuning; a "limit" ends it as if it were killed."""
    epoch, seen = Reconstruction.epoch, {"epochs": 0, "limit": None}

    def counted(process, *arguments):
        if seen["epochs"] == seen["limit"]:
            raise KeyboardInterrupt
        seen["epochs"] += 1
        return epoch(process, *arguments)

    monkeypatch.setattr(Reconstruction, "epoch", counted)
    return seen


def interrupted(inputs, folder, trainings, after, method=TUNED, **changes):
    trainings |= {"epochs": 0, "limit": after}
    with pytest.raises(KeyboardInterrupt):
        group(inputs, folder, method, **changes)
    assert not folder.exists()
    trainings |= {"epochs": 0, "limit": None}


@pytest.mark.parametrize("after", [0, 1, 7, 14])
def test_an_interrupted_grouping_tunes_the_clients_that_are_left_to_the_same_bytes(
    inputs, tmp_path, kept_at_once, trainings, after
):
    group(inputs, tmp_path / "undisturbed", TUNED)
    # Found again with the newcomers, they send what they have sent before.
    assert trainings["epochs"] == CLIENTS_IN_ALL
    interrupted(inputs, tmp_path / "out", trainings, after)
    group(inputs, tmp_path / "out", TUNED)
    assert trainings["epochs"] == CLIENTS_IN_ALL - after
    for file in SAME:
        expected = (tmp_path / "undisturbed" / file).read_bytes()
        assert (tmp_path / "out" / file).read_bytes() == expected
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("mode", ["sequential", "pooled"])
def test_what_depends_on_the_clients_before_is_tuned_from_the_beginning(
    inputs, tmp_path, kept_at_once, mode
):
    method = TUNED | {"tuning": mode, "again": False}
    group(inputs, tmp_path / "undisturbed", method)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        embedded = []

        def twice(*arguments):
            embedded.append(embed(*arguments))
            if len(embedded) == 3:
                raise KeyboardInterrupt
            return embedded[-1]

        patch.setattr(flt, "embed", twice)
        group(inputs, tmp_path / "out", method)
    assert (tmp_path / "out.safetensors").exists()
    group(inputs, tmp_path / "out", method)
    for file in SAME:
        expected = (tmp_path / "undisturbed" / file).read_bytes()
        assert (tmp_path / "out" / file).read_bytes() == expected


@pytest.mark.parametrize("changed", ["seed", "lr", "encoder"])
def test_a_checkpoint_of_another_grouping_or_encoder_is_not_continued(
    inputs, tmp_path, kept_at_once, trainings, changed
):
    interrupted(inputs, tmp_path / "out", trainings, 7)
    changes = {"seed": 4} if changed == "seed" else {}
    method = TUNED | ({"lr": 0.1} if changed == "lr" else {})
    if changed == "encoder":
        shutil.copytree(inputs["encoder"], tmp_path / "encoder")
        record = read_json(inputs["encoder"] / records.RECORD)
        del record["digest"]
        seal.write(tmp_path / "encoder", record | {"losses": [1.0]}, {}, record["files"])
        inputs = inputs | {"encoder": tmp_path / "encoder"}
    group(inputs, tmp_path / "out", method, **changes)
    assert trainings["epochs"] == CLIENTS_IN_ALL


# ---- Runs that average by it --------------------------------------------------------------------


def run_config(method, **changes):
    config = {"run": "tiny", "paper": "flt", "scale": "demo", "seed": 0, "dataset": "mnist"}
    config |= {"federation": FEDERATION, "model": {"name": "mlp"}, "method": method, "rounds": 4}
    config |= {"training": {"epochs": 1, "batch_size": 10, "lr": 0.1}, "keep_every": 0}
    return config | {"evaluate_every": 1, "grouping": "tiny"} | changes


def train(inputs, grouping, folder, method, **changes):
    lines = []
    runs.execute(
        run_config(method, **changes),
        data=inputs["data"],
        federation=inputs["federation"],
        out=folder / "record",
        saved=folder / "checkpoint.safetensors",
        grouping=grouping,
        origin=ORIGIN,
        device="cpu",
        path="auto",
        workers=1,
        tell=lines.append,
    )
    return lines


@pytest.mark.parametrize("name", ["one_shot", "flt_code"])
def test_a_run_averages_by_its_grouping(inputs, found, tmp_path, name):
    train(inputs, found, tmp_path, {"name": name, "fraction": 0.5})
    record, related = records.load_record(tmp_path / "record"), relatedness.load(found)
    assert record["groups"] == alike(related.related)
    assert len(set(record["groups"])) == 3
    if name == "one_shot":
        hosts = [record["groups"][host] for host in related.placed]
        assert [entry["leaf"] for entry in record["newcomers"]] == hosts


def test_newcomers_and_changed_clients_join_a_run(inputs, found, tmp_path):
    train(inputs, found, tmp_path, {"name": "flt_dynamic", "again": 2})
    record, (_, federation) = records.load_record(tmp_path / "record"), arrays(inputs)
    rounds = records.load_rounds(tmp_path / "record")
    trained = rounds[rounds["metric"] == "update_norm"].groupby("round")["member"].apply(set)
    present = set(range(15)) - set(federation.replaces.tolist())
    assert trained.tolist() == [set(range(9)), set(range(9)), present, present]
    assert len(record["groups"]) == 15
    for entry in record["newcomers"]:
        others = [client for client in entry["clients"] if client != entry["client"]]
        assert {federation.groups[client] for client in others} == {entry["true_group"]}
    tested = rounds[rounds["metric"] == "accuracy"]
    assert [len(each) for _, each in tested[tested["scope"] == "client"].groupby("round")] == [
        9
    ] * 5


def killed_after_a_round(monkeypatch):
    """Let a run end as if it were killed once its second round would begin."""
    monkeypatch.setattr(runs.checkpoint, "SAVE_SECONDS", 0)
    step = runs.step

    def once(run):
        if run.completed:
            raise KeyboardInterrupt
        step(run)

    monkeypatch.setattr(runs, "step", once)


@pytest.mark.parametrize("altered", [None, "related", "placed", "later"])
def test_a_checkpoint_by_another_grouping_is_not_continued(
    inputs, found, tmp_path, monkeypatch, altered
):
    method = {"name": "flt_dynamic", "again": 2}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed_after_a_round(patch)
        train(inputs, found, tmp_path, method)
    other = relatedness.load(found)
    if altered:
        array = getattr(other, altered)
        changed = 1 - array if altered == "related" else np.roll(array, 1, axis=0)
        assert not np.array_equal(changed, array)
        vars(other)[altered] = changed
    save(other, tmp_path)
    lines = train(inputs, tmp_path, tmp_path, method)
    assert ("continuing after round 1" in lines) is (altered is None)


# ---- The command line ---------------------------------------------------------------------------


def command(inputs, folder, method, **changes):
    options = {"config": json.dumps(configured(method, **changes)), "out": folder}
    options |= {"checkpoint": folder.parent / "checkpoint", "device": "cpu"} | ORIGIN._asdict()
    pairs = ((f"--{name}", str(value)) for name, value in (inputs | options).items() if value)
    return ["grouping", *(part for pair in pairs for part in pair)]


def refused(capsys, arguments):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    *_, line = printed.err.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def test_the_step_finds_a_grouping(inputs, found, tmp_path, capsys):
    assert main(command(inputs, tmp_path, FLT)) == 0
    *_, line = capsys.readouterr().err.splitlines()
    assert line == "9 clients in 3 groups, adjusted Rand index 1.00"
    for file in SAME:
        assert (tmp_path / file).read_bytes() == (found / file).read_bytes()


def test_an_encoder_may_be_left_empty_as_the_workflow_does(inputs, tmp_path):
    arguments = command(inputs | {"encoder": None}, tmp_path, PCA)
    assert main([*arguments, "--encoder"]) == 0


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        ({"name": "distances"}, "unknown grouping 'distances'; allowed are fedgroup, flt, "),
        ({}, "unknown grouping ''; allowed are fedgroup, flt, "),
        (PCA | {"gama": 1}, "grouping pca_kmeans_hc has no setting 'gama'; allowed are dimensions"),
        (PCA | {"dimensions": 65}, "65 principal components of 64 pixels; allowed are 1 to 64"),
        (PCA | {"k": 40}, "client 0 has 16 samples, too few for a signature of k = 40 centres; ch"),
        (PCA | {"groups": 10}, "10 clusters of 9 clients; allowed are 1 to the number of clients"),
        (
            FLT | {"manifold": {"dimensions": 44}, "k": 5},
            "UMAP in 44 dimensions; allowed are 1 to 43 for 9 clients of k = 5",
        ),
        (FLT | {"manifold": {}, "k": 1}, "UMAP with 15 neighbours needs more centres than that; 9"),
        (FLT | {"k": 17}, "client 0 has 16 samples, too few for a signature of k = 17 centres; ch"),
        (FLT | {"manifold": {"seed": 1}}, "grouping flt has no setting 'manifold.seed'; allowed a"),
    ],
)
def test_what_cannot_be_found_is_one_sentence(inputs, tmp_path, capsys, method, sentence):
    line = refused(capsys, command(inputs, tmp_path / "out", method))
    assert line.startswith(sentence)
    assert not (tmp_path / "out").exists()


def test_a_grouping_that_needs_an_encoder_says_so(inputs, tmp_path, capsys):
    line = refused(capsys, command(inputs | {"encoder": None}, tmp_path / "out", FLT))
    assert line == "grouping flt needs an encoder: `encoder:` of the entry, or `network=`"
    line = refused(capsys, command(inputs | {"encoder": tmp_path}, tmp_path / "out", FLT))
    assert line.startswith(f"cannot read {tmp_path / 'record.json'}: ")


def test_absent_inputs_and_texts_are_one_sentence(inputs, tmp_path, capsys):
    for name in ("data", "federation"):
        line = refused(capsys, command(inputs | {name: tmp_path / "no"}, tmp_path / "out", PCA))
        assert str(tmp_path / "no") in line
    words, labels = np.ones((6, 4), np.int32), np.zeros(6, int)
    text = datasets.build("mnist", "builtin", words, labels, 4, ("a",), vocabulary=("x", "y"))
    datasets.save(text, tmp_path / "news.safetensors")
    files = {"data": tmp_path / "news.safetensors", "federation": tmp_path / "federation"}
    federations.save(federations.load(inputs["federation"])[0], files["federation"], text.digest)
    arguments = command(inputs | files, tmp_path / "out", PCA)
    assert refused(capsys, arguments) == "mnist has no images; this grouping needs images"
    arguments[arguments.index("--data") + 1] = str(other := tmp_path / "other.safetensors")
    datasets.save(replace(text, name="news"), other)
    assert "it has the data of news, wanted are those of mnist" in refused(capsys, arguments)


@pytest.mark.parametrize("name", ["cfl", "fedavg", "local", "oracle", "fedsem", "ifca"])
def test_a_method_that_averages_by_no_grouping_is_not_given_one(inputs, found, tmp_path, name):
    with pytest.raises(InputError) as caught:
        train(inputs, found, tmp_path, {"name": name})
    line = f"method {name} averages by no grouping; drop `grouping:` from the run"
    assert str(caught.value) == line


@pytest.mark.parametrize("name", ["one_shot", "flt_code", "flt_dynamic"])
def test_a_method_that_averages_by_a_grouping_needs_one(inputs, tmp_path, name):
    with pytest.raises(InputError) as caught:
        train(inputs, None, tmp_path, {"name": name})
    line = "the method needs a grouping: `grouping:` of the run, or `grouping=`"
    assert str(caught.value) == line


def test_a_grouping_that_was_not_found_again_cannot_be_dynamic(inputs, tmp_path):
    group(inputs, tmp_path / "grouping", PCA)
    with pytest.raises(InputError, match="needs a grouping that was found with `again: true`"):
        train(inputs, tmp_path / "grouping", tmp_path, {"name": "flt_dynamic"})


# ---- The ledger ---------------------------------------------------------------------------------

ABOUT = {"purpose": "to test", "expected": "nothing", "minutes": {"demo": 1}}
CLIENTS = {"dataset": "mnist", "federation": {"kind": "disjoint_labels", "clients": 4, "groups": 2}}
LEDGER = {
    "paper": "flt",
    "title": "A paper",
    "authors": "Somebody",
    "year": 2022,
    "versions": ["first"],
    "encoders": {
        "server": ABOUT
        | {
            "dataset": "emnist",
            "model": {"name": "conv_autoencoder"},
            "training": {"epochs": 3},
            "scales": {"demo": {"training": {"epochs": 1}}},
        }
    },
    "groupings": {
        "related": ABOUT
        | CLIENTS
        | {
            "encoder": "server",
            "method": {"name": "flt"},
            "seeds": {"demo": [0]},
            "scales": {"demo": {"federation": {"samples": 10}, "method": {"k": 2}}},
        }
    },
    "runs": {
        "one": ABOUT
        | CLIENTS
        | {
            "model": {"name": "mlp"},
            "training": {"epochs": 1, "batch_size": 10, "lr": 0.1, "layers": "last"},
            "method": {"name": "one_shot"},
            "grouping": "related",
            "rounds": 5,
            "seeds": {"demo": [0]},
            "scales": {"demo": {"federation": {"samples": 10}}},
        }
    },
    "studies": {},
    "artefacts": {},
    "claims": {},
}


def ledger(folder, place="", value=None):
    content = deepcopy(LEDGER)
    *parents, key = place.split("/")
    inner = content
    for parent in parents:
        inner = inner[parent]
    if key:
        inner[key] = value
    path = folder / "flt.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_ledger_may_name_encoders_groupings_and_runs_by_them(tmp_path):
    read = load_ledger(ledger(tmp_path))
    assert resolved_runs(read, "demo")["one"]["config"]["grouping"] == "related"
    grouping = resolved_groupings(read, "demo")["related"]
    assert grouping["config"]["federation"] == CLIENTS["federation"] | {"samples": 10}
    assert grouping["config"]["method"] == {"name": "flt", "k": 2}
    assert (grouping["config"]["encoder"], grouping["seeds"]) == ("server", [0])
    assert resolved_encoders(read, "demo")["server"]["training"] == {"epochs": 1}
    assert resolved_encoders(read, "paper")["server"]["training"] == {"epochs": 3}


OTHER = CLIENTS["federation"] | {"clients": 6}


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("runs/one/federation", OTHER, "run one at scale demo has another federation than its gr"),
        ("runs/one/dataset", "emnist", "run one at scale demo has another dataset than its group"),
        ("runs/one/scales", {}, "run one at scale demo has another federation than its grouping "),
        ("groupings/related/scales", {"paper": {"dataset": "emnist"}}, "run one at scale demo has"),
        (
            "groupings/related/scales/paper",
            {"federation": {"groups": 3}},
            "run one at scale paper has another federation than its grouping related",
        ),
        (
            "runs/one/seeds",
            {"demo": [0, 2, 1]},
            "run one at scale demo has the seed 1, which its grouping related lacks; it has 0",
        ),
        (
            "runs/one/seeds",
            {"demo": [0], "desktop": [3]},
            "run one at scale desktop has the seed 3, which its grouping related lacks; it has n",
        ),
        ("runs/one/grouping", "two", "one names grouping 'two', which does not exist"),
        ("groupings/related/encoder", "two", "related names encoder 'two', which does not exist"),
        ("groupings/related/seed", 1, "has no key 'groupings.related.seed'; allowed are dataset,"),
        ("encoders/server/epochs", 1, "has no key 'encoders.server.epochs'; allowed are dataset,"),
        (
            "encoders/server/scales",
            {"demo": {"epochs": 1}},
            "encoder server at scale demo has no key 'epochs'; allowed are dataset, model",
        ),
        (
            "groupings/related/scales/demo",
            {"federation": {"samples": 10}, "k": 1},
            "grouping related at scale demo has no key 'k'; allowed are dataset, federation",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path, place, value, sentence):
    path = ledger(tmp_path, place, value)
    assert sentence in told(load_ledger, path)
