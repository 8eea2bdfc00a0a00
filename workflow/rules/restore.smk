# Records that are published, put in place as if they had been computed here.
#
# REQUIRED INPUTS
#   figures/<scale>/<paper>/records.parquet    every record of a paper, without the models of runs
# OUTPUTS
#   results/<scale>/{runs,groupings,encoders,studies}/...    as of the rules that compute them
#
# Only records of the plan's own settings and code are taken (`clustered_fl.workflow.archived`); these
# rules come before those that compute. The archive's age means nothing, hence `ancient`.


rule restore_run:
    """Take one run from the archive of its paper."""
    input:
        archive=ancient(PLAN.archives.file_of(PLAN.run)),
    output:
        record="results/{scale}/runs/{record}/record.json",
        others=[f"results/{{scale}}/runs/{{record}}/{name}" for name in FILES["run"][1:]],
    log:
        "logs/{scale}/restored/runs/{record}.log",
    benchmark:
        "logs/benchmarks/{scale}/restored/runs/{record}.tsv"
    wildcard_constraints:
        record=PLAN.archives.constraint(PLAN.run),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        key=PLAN.archives.key_of(PLAN.run),
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl restore \
            --archive {input.archive:q} \
            --key {params.key:q} \
            --out "$(dirname {output.record:q})"
        """


use rule restore_run as restore_grouping with:
    input:
        archive=ancient(PLAN.archives.file_of(PLAN.grouping)),
    output:
        record="results/{scale}/groupings/{record}/record.json",
        others=[f"results/{{scale}}/groupings/{{record}}/{name}" for name in FILES["grouping"][1:]],
    log:
        "logs/{scale}/restored/groupings/{record}.log",
    benchmark:
        "logs/benchmarks/{scale}/restored/groupings/{record}.tsv"
    wildcard_constraints:
        record=PLAN.archives.constraint(PLAN.grouping),
    params:
        key=PLAN.archives.key_of(PLAN.grouping),


use rule restore_run as restore_encoder with:
    input:
        archive=ancient(PLAN.archives.file_of(PLAN.encoder)),
    output:
        record="results/{scale}/encoders/{record}/record.json",
        others=[f"results/{{scale}}/encoders/{{record}}/{name}" for name in FILES["encoder"][1:]],
    log:
        "logs/{scale}/restored/encoders/{record}.log",
    benchmark:
        "logs/benchmarks/{scale}/restored/encoders/{record}.tsv"
    wildcard_constraints:
        record=PLAN.archives.constraint(PLAN.encoder),
    params:
        key=PLAN.archives.key_of(PLAN.encoder),


use rule restore_run as restore_study with:
    input:
        archive=ancient(PLAN.archives.file_of(PLAN.study)),
    output:
        record="results/{scale}/studies/{record}/record.json",
        others=[f"results/{{scale}}/studies/{{record}}/{name}" for name in FILES["study"][1:]],
    log:
        "logs/{scale}/restored/studies/{record}.log",
    benchmark:
        "logs/benchmarks/{scale}/restored/studies/{record}.tsv"
    wildcard_constraints:
        record=PLAN.archives.constraint(PLAN.study),
    params:
        key=PLAN.archives.key_of(PLAN.study),


ruleorder: restore_run > train
ruleorder: restore_grouping > grouping
ruleorder: restore_encoder > encoder
ruleorder: restore_study > study
