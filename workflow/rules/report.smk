# What a reader sees: a site from results, and the part of it that is committed.
#
# REQUIRED INPUTS
#   config/papers/<paper>.yaml                 titles, captions, claims
#   docs/add_your_own.md                       a page of it, where methods can be added
#   results/<scale>/verdicts.csv               one row per claim
#   results/<scale>/artefacts/..., runs/..., studies/...
# OUTPUTS
#   results/<scale>/report/                    a site that opens from the folder, complete when zipped
#   figures/<scale>/                           the same without executed notebooks, PDF and LaTeX
#
# Both folders are replaced as a whole when the new one is ready, so nothing stale stays behind. What
# is published stays when publishing fails, hence `update`, and so do papers that were not asked for.


rule report_site:
    """Show every artefact and every verdict with the evidence."""
    input:
        ledgers=expand("config/papers/{paper}.yaml", paper=PLAN.settings.papers),
        verdicts="results/{scale}/verdicts.csv",
        tested="results/{scale}/verdicts.tested",
        artefacts=[file for name in PLAN.artefacts for file in PLAN.artefact_files(name)],
        records=PLAN.records([run["family"] for run in PLAN.runs.values()]),
        groupings=PLAN.grouping_files(list(PLAN.groupings)),
        encoders=PLAN.encoder_files(list(PLAN.encoders)),
        studies=PLAN.study_files(list(PLAN.studies)),
        templates=sorted(map(str, Path("src/clustered_fl/report/templates").iterdir())),
        guide="docs/add_your_own.md",
    output:
        index="results/{scale}/report/index.html",
    log:
        "logs/{scale}/report.log",
    benchmark:
        "logs/benchmarks/{scale}/report.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=PLAN.settings_json(),
        code=fingerprint("clustered_fl.report.site"),
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl report \
            --settings {params.settings:q} \
            --ledgers config/papers \
            --guide {input.guide:q} \
            --out "$(dirname {output.index:q})"
        """


rule publish:
    """Copy what is worth committing to figures/; `snakemake publish`."""
    input:
        report=f"{PLAN.results}/report/index.html",
        guide="docs/add_your_own.md",
    output:
        index=update(f"figures/{PLAN.settings.scale}/index.html"),
    log:
        f"logs/{PLAN.settings.scale}/publish.log",
    benchmark:
        f"logs/benchmarks/{PLAN.settings.scale}/publish.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=PLAN.settings_json(),
        code=fingerprint("clustered_fl.publish"),
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl publish \
            --settings {params.settings:q} \
            --ledgers config/papers \
            --guide {input.guide:q} \
            --out "$(dirname {output.index:q})"
        """
