# Computations without training: toy problems and numerical checks of theorems.
#
# REQUIRED INPUTS
#   none
# OUTPUTS
#   results/<scale>/studies/<study>/record.json, and beside it one parquet per table that it names


rule study:
    """Compute one study of the ledger."""
    output:
        record="results/{scale}/studies/{study}/record.json",
    log:
        "logs/{scale}/studies/{study}.log",
    benchmark:
        "logs/benchmarks/{scale}/studies/{study}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=60,
    params:
        function=PLAN.study_function,
        settings=PLAN.study_settings,
        code=PLAN.study_code,
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl study \
            --function {params.function:q} \
            --settings {params.settings:q} \
            --code {params.code:q} \
            --out "$(dirname {output.record:q})"
        """
