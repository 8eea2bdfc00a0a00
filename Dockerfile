# The workflow with its environment, on CPUs and, with `docker run --gpus all`, on NVIDIA GPUs:
#     docker build --tag clustered-fl .
#     docker run --rm --volume "$PWD/results:/clustered-fl/results" clustered-fl
# Another command goes at the end: `... clustered-fl snakemake cfl_fig9` (docs/running.md).
FROM python:3.11.13-slim-bookworm
WORKDIR /clustered-fl
COPY requirements.txt ./
RUN python -m pip install --quiet --require-hashes -r requirements.txt
COPY . ./
RUN python -m pip install --quiet --no-deps --no-build-isolation -e .
CMD ["snakemake", "--cores", "all", "--config", "scale=demo", "papers=[cfl]"]
