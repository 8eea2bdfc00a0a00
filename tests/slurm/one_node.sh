#!/usr/bin/env bash
# One figure through profiles/slurm on a cluster of this machine alone, compared with a local run.
#
#     apt-get install slurm-wlm munge
#     pip install snakemake-executor-plugin-slurm==2.8.0
#     tests/slurm/one_node.sh [target]          cfl_fig6 if none is given; as root, minutes
#
# Not part of the tests: it needs Slurm and starts its daemons (munged, slurmctld, slurmd), which it
# stops at the end. All of theirs is in a temporary folder, which is removed after success, but for
# /etc/slurm/slurm.conf: the plugin takes SLURM_CONF from the environment of jobs. It does not
# replace one that is there. The cluster has neither accounting nor cgroups, like the smallest
# clusters. Both runs are made in copies of this checkout at scale demo. It fails if a job fails, or
# if a record or an artefact's numbers differ by a byte; cost.json, which says seconds, may.
set -euo pipefail

target=${1:-cfl_fig6}
configuration=/etc/slurm/slurm.conf
[ ! -e $configuration ] || { echo "$configuration is there: this machine has a cluster" >&2; exit 2; }
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d /tmp/one_node.XXXXXX)
chmod 755 "$work" # munged refuses a socket that others cannot reach
mkdir "$work"/{state,spool,local,cluster}
daemons=()

stop() {
    rm -f $configuration
    [ ${#daemons[@]} -eq 0 ] || kill "${daemons[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT

# Four cores and 16 GB whatever the machine has: jobs reserve, but nothing holds them to it.
mkdir -p $(dirname $configuration)
cat >$configuration <<CONF
ClusterName=one_node
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=4 RealMemory=16000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
CONF

head -c 1024 /dev/urandom >"$work/munge.key"
chmod 600 "$work/munge.key"
munged --foreground --force --socket="$work/munge.socket" --key-file="$work/munge.key" \
    --pid-file="$work/munged.pid" --seed-file="$work/munged.seed" &>"$work/munged.log" &
daemons+=($!)
slurmctld -D &>"$work/slurmctld.log" &
daemons+=($!)
slurmd -D &>"$work/slurmd.log" &
daemons+=($!)
for _ in $(seq 30); do
    [ "$(sinfo --noheader --format=%T 2>/dev/null)" = idle ] && break
    sleep 1
done
sinfo --long || { tail "$work"/*.log; exit 1; }

# The path is fixed, because the fastest is measured and a record says which it was.
run() { # folder, arguments
    (cd "$work/$1" && PYTHONPATH=$work/$1/src${PYTHONPATH:+:$PYTHONPATH} \
        snakemake "$target" --config archive=false path=sequential "${@:2}")
}
for folder in local cluster; do
    (cd "$checkout" && git ls-files --cached -z | tar --null --files-from=- -cf -) |
        tar -xf - -C "$work/$folder"
done
run local
# Jobs of a minute are asked for more often than those of hours.
run cluster --workflow-profile profiles/slurm --slurm-init-seconds-before-status-checks 5 \
    --latency-wait 10
squeue --states=all --format='%.6i %.4t %.10l %.10M %.4C %.8m %k' | cut -c 1-150

digests() {
    (cd "$work/$1/results/demo" && find . -type f ! -name cost.json ! -name '*.html' \
        ! -path './paths/*' ! -path './checkpoints/*' | sort | xargs sha256sum)
}
digests local >"$work/local.sha256"
digests cluster >"$work/cluster.sha256"
diff "$work/local.sha256" "$work/cluster.sha256"
echo "$target: $(wc -l <"$work/local.sha256") files are the same, computed here and by Slurm."
stop
rm -r "$work"
