# `snakemake` finds the workflow from here too; everything is in workflow/, where modules look for it.


include: "workflow/Snakefile"
