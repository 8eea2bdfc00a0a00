# One training per job: a federation, a model, local training, a method and a seed.
#
# REQUIRED INPUTS
#   data/<source>/<dataset>.safetensors
#   results/<scale>/federations/<run>/seed<seed>.safetensors
# OUTPUTS
#   results/<scale>/runs/<run>/seed<seed>/{record.json,cost.json,rounds.parquet,models.safetensors}
#
# The checkpoint is deliberately no output: a failed job loses its outputs, and a run must continue
# where it was. What reruns a training: its configuration, its federation, or the meaning of the code
# that computes it; not comments, formatting, threads or another run of the ledger.


rule train:
    """Train one run of the ledger and leave its record."""
    input:
        data=PLAN.dataset_of,
        federation="results/{scale}/federations/{run}/seed{seed}.safetensors",
    output:
        record="results/{scale}/runs/{run}/seed{seed}/record.json",
        cost="results/{scale}/runs/{run}/seed{seed}/cost.json",
        rounds="results/{scale}/runs/{run}/seed{seed}/rounds.parquet",
        models="results/{scale}/runs/{run}/seed{seed}/models.safetensors",
    log:
        "logs/{scale}/runs/{run}/seed{seed}.log",
    benchmark:
        "logs/benchmarks/{scale}/runs/{run}/seed{seed}.tsv"
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        gpu=1 if PLAN.settings.device == "cuda" else 0,
        mem_mb=3000,
        runtime=1440,
    params:
        config=PLAN.run_config,
        code=PLAN.run_code,
        device=PLAN.settings.device,
        path=PLAN.settings.path,
        paths="results/{scale}/paths",
        checkpoint="results/{scale}/checkpoints/{run}/seed{seed}.safetensors",
    shell:
        """
        exec &> >(tee -a {log:q})
        python -m clustered_fl train \
            --config {params.config:q} \
            --data {input.data:q} \
            --federation {input.federation:q} \
            --checkpoint {params.checkpoint:q} \
            --code {params.code:q} \
            --device {params.device:q} \
            --path {params.path:q} \
            --paths {params.paths:q} \
            --workers {threads} \
            --out "$(dirname {output.record:q})"
        """
