# From a source of data to federations.
#
# REQUIRED INPUTS
#   config/datasets.yaml                                  what each dataset must look like
# OUTPUTS
#   data/<kind>/<dataset>.safetensors                     canonical arrays, verified; builtin or real
#   data/<kind>/drift/<clients>/seed<seed>.safetensors    the same with clients' images transformed
#   results/<scale>/federations/<clients>/seed<seed>.safetensors    which client holds what


rule dataset:
    """Verify a dataset, or fetch it, and write its canonical arrays; a failure leaves former ones."""
    input:
        registry=ancient(PLACES.found("config/datasets.yaml")),
    output:
        data=update(f"{PLAN.data}/{{dataset}}.safetensors"),
    log:
        f"logs/data/{PLAN.settings.data_kind}/{{dataset}}.log",
    benchmark:
        f"logs/benchmarks/data/{PLAN.settings.data_kind}/{{dataset}}.tsv"
    # Nodes of a cluster often have no network, and the mirror need not be on its file system.
    localrule: True
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        # Not parameters: source, mirror and whether partial data will do. Data are known by their
        # digest, and moving a mirror reruns nothing.
        recipe=PLAN.recipe,
        cache=PLACES.made("data/download/hub"),
        code=fingerprint("clustered_fl.data.sources:prepare"),
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl dataset \
            --name {wildcards.dataset:q} \
            --source "$CLUSTERED_FL_SOURCE" \
            --mirror "$CLUSTERED_FL_MIRROR" \
            --cache {params.cache:q} \
            --registry {input.registry:q} \
            $CLUSTERED_FL_COMPLETE \
            --out {output.data:q}
        """


rule drift:
    """Let every client transform its images once, and write all images as a dataset."""
    input:
        data=PLAN.federations.source,
    output:
        data=f"{PLAN.data}/drift/{{clients}}/seed{{seed}}.safetensors",
    log:
        f"logs/data/{PLAN.settings.data_kind}/drift/{{clients}}/seed{{seed}}.log",
    benchmark:
        f"logs/benchmarks/data/{PLAN.settings.data_kind}/drift/{{clients}}/seed{{seed}}.tsv"
    group:
        PLAN.sharing("federations")
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        settings=PLAN.federations.settings,
        code=PLAN.federations.images_code,
    shell:
        """
        exec &>{log:q}
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
        data=PLAN.federations.divided,
    output:
        federation="results/{scale}/federations/{clients}/seed{seed}.safetensors",
    log:
        "logs/{scale}/federations/{clients}/seed{seed}.log",
    benchmark:
        "logs/benchmarks/{scale}/federations/{clients}/seed{seed}.tsv"
    group:
        PLAN.sharing("federations")
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=1000,
        runtime=5,
    params:
        settings=PLAN.federations.settings,
        code=PLAN.federations.code,
    shell:
        """
        exec &>{log:q}
        python -m clustered_fl partition \
            --data {input.data:q} \
            --seed {wildcards.seed} \
            --settings {params.settings:q} \
            --out {output.federation:q}
        """
