# From a source of data to federations.
#
# REQUIRED INPUTS
#   config/datasets.yaml                                    what each dataset must look like
# OUTPUTS
#   data/<source>/<dataset>.safetensors                     canonical arrays, verified
#   data/<source>/drift/<key>/seed<seed>.safetensors        the same with clients' images transformed
#   results/<scale>/federations/<name>/seed<seed>.safetensors    who holds what


rule dataset:
    """Verify a dataset, or fetch it, and write its canonical arrays."""
    input:
        registry="config/datasets.yaml",
    output:
        data=f"{PLAN.data}/{{dataset}}.safetensors",
    log:
        f"logs/data/{PLAN.settings.data_source}/{{dataset}}.log",
    benchmark:
        f"logs/benchmarks/data/{PLAN.settings.data_source}/{{dataset}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        source=PLAN.settings.data_source,
        mirror=PLAN.settings.mirror or "",
        complete="--complete" if PLAN.settings.scale == "paper" else "",
        code=fingerprint("clustered_fl.data.sources"),
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl dataset \
            --name {wildcards.dataset:q} \
            --source {params.source:q} \
            --mirror {params.mirror:q} \
            --cache data/download/hub \
            --registry {input.registry:q} \
            {params.complete} \
            --out {output.data:q}
        """


rule drift:
    """Let every client transform its images once, and write all images as a dataset."""
    input:
        data=PLAN.drifts.source,
    output:
        data=f"{PLAN.data}/drift/{{drift}}/seed{{seed}}.safetensors",
    log:
        f"logs/data/{PLAN.settings.data_source}/drift/{{drift}}/seed{{seed}}.log",
    benchmark:
        f"logs/benchmarks/data/{PLAN.settings.data_source}/drift/{{drift}}/seed{{seed}}.tsv"
    wildcard_constraints:
        drift="[0-9a-f]{16}",
    conda:
        "../../environment.yml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=PLAN.drifts.settings,
        code=PLAN.drifts.code,
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl partition \
            --images \
            --data {input.data:q} \
            --seed {wildcards.seed} \
            --settings {params.settings:q} \
            --out {output.data:q}
        """


rule partition:
    """Decide which client holds which samples, how it labels them and on what it is tested."""
    input:
        data=PLAN.dataset_of,
    output:
        federation="results/{scale}/federations/{name}/seed{seed}.safetensors",
    log:
        "logs/{scale}/federations/{name}/seed{seed}.log",
    benchmark:
        "logs/benchmarks/{scale}/federations/{name}/seed{seed}.tsv"
    wildcard_constraints:
        name="|".join(PLAN.clients),
    conda:
        "../../environment.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=PLAN.federation_settings,
        code=PLAN.federation_code,
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl partition \
            --data {input.data:q} \
            --seed {wildcards.seed} \
            --settings {params.settings:q} \
            --out {output.federation:q}
        """
