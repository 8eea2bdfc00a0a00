# Computations without training: toy problems and numerical checks of theorems.
#
# REQUIRED INPUTS
#   none
# OUTPUTS
#   results/<scale>/studies/<name>/{record.json,cost.json}, and one parquet per table that it names


rule study:
    """Compute one study of the ledger."""
    output:
        record=update("results/{scale}/studies/{name}/record.json"),
        cost=update("results/{scale}/studies/{name}/cost.json"),
    log:
        "logs/{scale}/studies/{name}.log",
    benchmark:
        "logs/benchmarks/{scale}/studies/{name}.tsv"
    wildcard_constraints:
        name="|".join(PLAN.study.entries) or "none",
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        config=PLAN.study.config,
        code=PLAN.study.code,
        identity=PLAN.identity,
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl study \
            --config {params.config:q} \
            --code {params.code:q} \
            --identity {params.identity:q} \
            --out "$(dirname {output.record:q})"
        """
