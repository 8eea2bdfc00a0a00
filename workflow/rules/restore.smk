# Records that are published, put in place as if they had been computed here.
#
# REQUIRED INPUTS
#   figures/<scale>/<paper>/records.parquet    every record of a paper, without learnt parameters
# OUTPUTS
#   results/<scale>/{runs,groupings,encoders,studies}/...    as of the rules that compute them
#
# Only records of the plan's own settings and code are taken (`clustered_fl.workflow.archived`); these
# rules come before those that compute. The archive's age means nothing, hence `ancient`.


for kind in PLAN.kinds:
    folder = f"results/{{scale}}/{SECTIONS[kind.name]}/{{record}}"

    for restore, records, files in PLAN.archives.restored(kind):

        rule:
            """Take one record from the archive of its paper."""
            name:
                restore
            input:
                archive=ancient(PLAN.archives.file_of(kind)),
            output:
                record=f"{folder}/record.json",
                others=[f"{folder}/{name}" for name in files[1:]],
            log:
                f"logs/{{scale}}/restored/{SECTIONS[kind.name]}/{{record}}.log",
            benchmark:
                f"logs/benchmarks/{{scale}}/restored/{SECTIONS[kind.name]}/{{record}}.tsv"
            wildcard_constraints:
                record=records,
            localrule: True
            conda:
                "../envs/clustered_fl.yml"
            resources:
                mem_mb=2000,
                runtime=5,
            params:
                key=PLAN.archives.key_of(kind),
                identity=PLAN.archives.identity_of(kind),
            shell:
                """
                exec &>{log:q}
                python -m clustered_fl restore \
                    --archive {input.archive:q} \
                    --key {params.key:q} \
                    --out "$(dirname {output.record:q})"
                """


ruleorder: restore_run > train
ruleorder: restore_grouping > grouping
ruleorder: restore_encoder > encoder
