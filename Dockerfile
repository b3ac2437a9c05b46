# An image with the command line, the library and the workflow, from the lock.
#   make image
#   docker run --rm --user "$(id -u)" --volume "$PWD:/work" agglearn reproduce maxent_table4 --cores 4
FROM python:3.11-slim-bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/agglearn
COPY . .
RUN make .venv/.ready
# A user without a home or rights on the package can still keep what numba and Matplotlib compile and cache.
ENV PATH=/opt/agglearn/.venv/bin:$PATH HOME=/tmp NUMBA_CACHE_DIR=/tmp/numba
WORKDIR /work
ENTRYPOINT ["agglearn"]
CMD ["--help"]
