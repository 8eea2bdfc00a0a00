# Every table and figure: a notebook executed with the paths of the records that it reads.
#
# REQUIRED INPUTS
#   results/<scale>/runs/... and results/<scale>/studies/... as the ledger says
#   notebooks/<paper>/<notebook>.ipynb
# OUTPUTS
#   results/<scale>/artefacts/<artefact>/<artefact>.{png,pdf,svg,csv}    a figure
#   results/<scale>/artefacts/<artefact>/<artefact>.{csv,md,tex}         a table
#   results/<scale>/artefacts/<artefact>/<artefact>.{html,ipynb}         the executed notebook
#   logs/<scale>/artefacts/<artefact>.ipynb                              kept when a cell fails


rule figure:
    """Make a figure and the page that explains it."""
    input:
        records=PLAN.artefacts.inputs,
        notebook=PLAN.artefacts.notebook,
    output:
        png=report(
            "results/{scale}/artefacts/{artefact}/{artefact}.png",
            caption="../report/artefact.rst",
            category="{scale}",
            subcategory="figures",
            labels={"artefact": "{artefact}", "form": "figure"},
        ),
        pdf="results/{scale}/artefacts/{artefact}/{artefact}.pdf",
        svg="results/{scale}/artefacts/{artefact}/{artefact}.svg",
        csv="results/{scale}/artefacts/{artefact}/{artefact}.csv",
        page="results/{scale}/artefacts/{artefact}/{artefact}.html",
        notebook="results/{scale}/artefacts/{artefact}/{artefact}.ipynb",
    log:
        messages="logs/{scale}/artefacts/{artefact}.log",
        notebook="logs/{scale}/artefacts/{artefact}.ipynb",
    benchmark:
        "logs/benchmarks/{scale}/artefacts/{artefact}.tsv"
    wildcard_constraints:
        artefact=PLAN.artefacts.named("figure"),
    group:
        PLAN.sharing("artefacts")
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=2000,
        runtime=15,
    params:
        # What the notebook is given: a trigger, and too long for a command line.
        told=PLAN.artefacts.told,
        caption=PLAN.artefacts.caption,
        code=PLAN.artefacts.code,
    shell:
        """
        exec &>{log.messages:q}
        python -m clustered_fl notebook \
            --artefact {wildcards.artefact:q} \
            --settings "$CLUSTERED_FL_SETTINGS" \
            --places "$CLUSTERED_FL_PLACES" \
            --executed {log.notebook:q} \
            --page {output.page:q} \
            --minutes {resources.runtime}
        """


use rule figure as table with:
    output:
        csv=report(
            "results/{scale}/artefacts/{artefact}/{artefact}.csv",
            caption="../report/artefact.rst",
            category="{scale}",
            subcategory="tables",
            labels={"artefact": "{artefact}", "form": "table"},
        ),
        md="results/{scale}/artefacts/{artefact}/{artefact}.md",
        tex="results/{scale}/artefacts/{artefact}/{artefact}.tex",
        page="results/{scale}/artefacts/{artefact}/{artefact}.html",
        notebook="results/{scale}/artefacts/{artefact}/{artefact}.ipynb",
    wildcard_constraints:
        artefact=PLAN.artefacts.named("table"),
