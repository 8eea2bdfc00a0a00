# What holds and what does not.
#
# REQUIRED INPUTS
#   config/papers/<paper>.yaml                 the claims
#   results/<scale>/runs/..., studies/...      the evidence
#   results/<scale>/artefacts/...              for the test of the results
# OUTPUTS
#   results/<scale>/verdicts.csv               one row per claim, and its digest (.sha256)
#   results/<scale>/verdicts.tested            written when verdicts and artefacts pass their test


rule verdicts:
    """Judge every claim of the ledgers by what it measures."""
    input:
        ledgers=PLAN.ledger_files(),
        records=PLAN.record_files(),
    output:
        table="results/{scale}/verdicts.csv",
        digest="results/{scale}/verdicts.csv.sha256",
    log:
        "logs/{scale}/verdicts.log",
    benchmark:
        "logs/benchmarks/{scale}/verdicts.tsv"
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        shown=PLAN.shown(),
        code=PLAN.claims_code(),
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl verdicts \
            --settings "$CLUSTERED_FL_SETTINGS" \
            --places "$CLUSTERED_FL_PLACES" \
            --out {output.table:q}
        """


rule test_results:
    """Test that every claim has one honest verdict and every artefact has numbers."""
    input:
        table="results/{scale}/verdicts.csv",
        artefacts=PLAN.artefacts.files(),
    output:
        tested=touch("results/{scale}/verdicts.tested"),
    log:
        "logs/{scale}/test_results.log",
    benchmark:
        "logs/benchmarks/{scale}/test_results.tsv"
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        shown=PLAN.shown(),
        code=fingerprint("clustered_fl.claims.consistency:check_results"),
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl check --settings "$CLUSTERED_FL_SETTINGS" --places "$CLUSTERED_FL_PLACES"
        """
