# Autoencoders that a server has before it knows its clients; each is trained once, with seed 0.
#
# REQUIRED INPUTS
#   data/<kind>/<dataset>.safetensors
# OUTPUTS
#   results/<scale>/encoders/<name>/{record.json,cost.json,encoder.safetensors,pictures.safetensors}


rule encoder:
    """Train one autoencoder of the ledger and leave its record."""
    input:
        data=PLAN.dataset,
    output:
        record=update("results/{scale}/encoders/{name}/record.json"),
        cost=update("results/{scale}/encoders/{name}/cost.json"),
        weights=update("results/{scale}/encoders/{name}/encoder.safetensors"),
        pictures=update("results/{scale}/encoders/{name}/pictures.safetensors"),
    log:
        "logs/{scale}/encoders/{name}.log",
    benchmark:
        "logs/benchmarks/{scale}/encoders/{name}.tsv"
    wildcard_constraints:
        name="|".join(PLAN.encoder.entries) or "none",
    # First of all: groupings wait for it, and runs for them, the longest way to a table.
    priority: 2
    conda:
        "../envs/clustered_fl.yml"
    resources:
        mem_mb=3000,
        runtime=720,
    params:
        config=PLAN.encoder.config,
        code=PLAN.encoder.code,
        identity=PLAN.identity,
        other_data=PLAN.other_data,
    shell:
        """
        exec &> >(tee {log:q})
        python -m clustered_fl encoder \
            --config {params.config:q} \
            --data {input.data:q} \
            --code {params.code:q} \
            --identity {params.identity:q} \
            --other_data {params.other_data:q} \
            --out "$(dirname {output.record:q})"
        """
