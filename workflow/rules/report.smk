# What a reader sees: a site from results, and the part of it that is committed.
#
# REQUIRED INPUTS
#   config/papers/<paper>.yaml                 titles, captions, claims
#   docs/add_your_own.md                       a page of it, where methods can be added
#   results/<scale>/verdicts.csv               one row per claim
#   results/<scale>/artefacts/..., runs/..., studies/...
# OUTPUTS
#   results/<scale>/report/                    a site that opens from the folder, complete when zipped
#   figures/<scale>/                           the same without SVG, PDF and LaTeX, a README per paper
#   figures/README.md                          what is published, of all scales
#
# The report, and each paper's folder in figures/, is replaced as a whole when the new one is ready, so
# nothing stale stays behind. Published records accumulate, and papers that were not asked for stay as
# they are. The rules that write to figures/ have neither an output nor a benchmark: committed files
# have times of their own (of `pages`, of `git pull`), by which nothing would seem left to do.


rule report_site:
    """Show every artefact and every verdict with the evidence."""
    input:
        ledgers=PLAN.ledger_files(),
        verdicts="results/{scale}/verdicts.csv",
        tested="results/{scale}/verdicts.tested",
        artefacts=PLAN.artefacts.files(),
        records=PLAN.record_files(),
        templates=PLACES.templates(),
        guide=PLACES.found("docs/add_your_own.md"),
    output:
        index="results/{scale}/report/index.html",
    log:
        "logs/{scale}/report.log",
    benchmark:
        "logs/benchmarks/{scale}/report.tsv"
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=5000,
        runtime=5,
    params:
        shown=PLAN.shown(),
        code=fingerprint("clustered_fl.report.site:build"),
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl report \
            --settings "$CLUSTERED_FL_SETTINGS" \
            --places "$CLUSTERED_FL_PLACES" \
            --guide {input.guide:q} \
            --out "$(dirname {output.index:q})"
        """


rule publish:
    """Copy what is worth committing to figures/; `snakemake publish`."""
    input:
        report=f"{PLAN.results}/report/index.html",
        guide=PLACES.found("docs/add_your_own.md"),
    log:
        f"logs/{PLAN.settings.scale}/publish.log",
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=6000,
        runtime=5,
    params:
        folder=PLACES.made(f"figures/{PLAN.settings.scale}"),
        pages="",
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl publish \
            {params.pages} \
            --settings "$CLUSTERED_FL_SETTINGS" \
            --places "$CLUSTERED_FL_PLACES" \
            --guide {input.guide:q} \
            --out {params.folder:q}
        """


rule archive:
    """Add the records that are finished to figures/ and nothing else; `snakemake archive`."""
    log:
        f"logs/{PLAN.settings.scale}/archive.log",
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=6000,
        runtime=5,
    params:
        folder=PLACES.made(f"figures/{PLAN.settings.scale}"),
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl archive \
            --settings "$CLUSTERED_FL_SETTINGS" \
            --places "$CLUSTERED_FL_PLACES" \
            --out {params.folder:q}
        """


use rule publish as pages with:
    """Write the pages in figures/ anew, with the notebooks of what was redrawn; `snakemake pages`."""
    input:
        guide=PLACES.found("docs/add_your_own.md"),
    log:
        f"logs/{PLAN.settings.scale}/pages.log",
    resources:
        mem_mb=4000,
        runtime=5,
    params:
        pages="--pages",
