# kagent with Java and all jars, from the lock file: needs no network at run time.
FROM python:3.12.8-slim-bookworm AS base

RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*

ENV PYTHONUNBUFFERED=1 \
    PATH=/opt/kagent/bin:$PATH \
    KAGENT_CACHE=/opt/kagent-cache

WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /opt/kagent \
 && pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY kagent ./kagent
COPY tables ./tables
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
 && kagent jars \
 && chmod -R a+rwX "$KAGENT_CACHE"

RUN useradd --create-home --uid 10001 kagent \
 && install --directory --owner=kagent /var/lib/kagent
USER kagent
WORKDIR /home/kagent
ENTRYPOINT ["kagent"]
CMD ["--help"]
