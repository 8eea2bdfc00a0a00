# Computations without training: toy problems and numerical checks of theorems.
#
# REQUIRED INPUTS
#   none
# OUTPUTS
#   results/<scale>/studies/<name>/seed<seed>/{record.json,cost.json}, and one parquet per table
#
# One rule for each, because their tables differ: `study_<name>`. Seeds that are restored have
# `restore_study_<name>` instead.


for study in PLAN.computed(PLAN.study):

    rule:
        """Compute one study of the ledger."""
        name:
            f"study_{study}"
        output:
            record=update("results/{scale}/studies/{name}/seed{seed}/record.json"),
            others=update(
                [
                    f"results/{{scale}}/studies/{{name}}/seed{{seed}}/{file}"
                    for file in PLAN.study.files(study)[1:]
                ]
            ),
        log:
            "logs/{scale}/studies/{name}/seed{seed}.log",
        benchmark:
            "logs/benchmarks/{scale}/studies/{name}/seed{seed}.tsv"
        wildcard_constraints:
            name=study,
            seed=PLAN.archives.missing_seeds(PLAN.study, study),
        group:
            PLAN.sharing("studies")
        conda:
            "../envs/clustered_fl.yml"
        resources:
            mem_mb=2000,
            runtime=20,
        params:
            config=PLAN.study.config,
            code=PLAN.study.code,
            identity=PLAN.identity,
        shell:
            """
            exec &>{log:q}
            python -m clustered_fl study \
                --config {params.config:q} \
                --code {params.code:q} \
                --identity {params.identity:q} \
                --out "$(dirname {output.record:q})"
            """
