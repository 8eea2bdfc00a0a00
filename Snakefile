# `snakemake` starts here; everything is in workflow/, where modules and catalogs look for it.


include: "workflow/Snakefile"


rule default:
    """Everything: what an included rule is not, the default target."""
    input:
        rules.all.input,
