# One training per job: a federation, a model, local training, a method and a seed.
#
# REQUIRED INPUTS
#   data/<source>/<dataset>.safetensors
#   results/<scale>/federations/<clients>/seed<seed>.safetensors
#   results/<scale>/groupings/<grouping>/seed<seed>/...    for runs that average by one
# OUTPUTS
#   results/<scale>/runs/<name>/seed<seed>/{record.json,cost.json,rounds.parquet,models.safetensors}
#
# The checkpoint is deliberately no output: a failed job loses its outputs, and a run must continue
# where it was. What reruns a training: its configuration, its federation, or the meaning of the code
# that computes it; not comments, formatting, threads or another run of the ledger.


rule train:
    """Train one run of the ledger and leave its record."""
    input:
        data=PLAN.dataset,
        federation=PLAN.federation,
        below=PLAN.below_files,
    output:
        record="results/{scale}/runs/{name}/seed{seed}/record.json",
        cost="results/{scale}/runs/{name}/seed{seed}/cost.json",
        rounds="results/{scale}/runs/{name}/seed{seed}/rounds.parquet",
        models="results/{scale}/runs/{name}/seed{seed}/models.safetensors",
    log:
        "logs/{scale}/runs/{name}/seed{seed}.log",
    benchmark:
        "logs/benchmarks/{scale}/runs/{name}/seed{seed}.tsv"
    wildcard_constraints:
        name="|".join(PLAN.run.entries) or "none",
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=1 if PLAN.settings.device == "cuda" else 0,
        mem_mb=PLAN.run.memory,
        runtime=1440,
    params:
        config=PLAN.run.config,
        code=PLAN.run.code,
        identity=PLAN.identity,
        device=PLAN.settings.device,
        path=PLAN.settings.path,
        paths="results/{scale}/paths",
        below=PLAN.below,
        checkpoint="results/{scale}/checkpoints/{name}/seed{seed}.safetensors",
    shell:
        """
        exec &> >(tee -a {log:q})
        python -m clustered_fl train \
            --config {params.config:q} \
            --data {input.data:q} \
            --federation {input.federation:q} \
            --checkpoint {params.checkpoint:q} \
            --code {params.code:q} \
            --identity {params.identity:q} \
            --device {params.device:q} \
            --path {params.path:q} \
            --paths {params.paths:q} \
            --grouping {params.below:q} \
            --workers {threads} \
            --out "$(dirname {output.record:q})"
        """
