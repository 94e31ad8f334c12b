# docker build -t sims . && docker run --rm -v "$PWD:/work" sims run rates --fidelity smoke
# Pinned and hashed requirements, then the package itself. g++ compiles the kernel sums; without it JAX does the work.
FROM python:3.13-slim
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY requirements/build.txt requirements/lock.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/build.txt \
    && pip install --no-cache-dir --no-build-isolation --require-hashes -r requirements/lock.txt
COPY . .
RUN pip install --no-cache-dir --no-build-isolation --no-deps .
WORKDIR /work
RUN python -m sims.simulation.native
ENTRYPOINT ["sims"]
CMD ["--help"]
