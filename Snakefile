# `snakemake` starts here; everything is in workflow/, where modules and catalogs look for it.


include: "workflow/Snakefile"


rule default:
    """Default target: everything."""
    input:
        rules.all.input,
