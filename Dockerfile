# The suite with nothing to install:
#
#   docker build -t watermark-conformance .
#   docker run --rm watermark-conformance gate --from 3.5.9 --to 4.1.4
#   docker run --rm -v "$PWD:/work" --user "$(id -u)" watermark-conformance validate cases
#
# Engines that a run needs are downloaded into /cache; keep it in a volume, `-v conformance-cache:/cache`. Behind a proxy or a mirror,
# a CA bundle and a pip.conf come as secrets, `--secret id=ca,src=bundle.pem --secret id=pip,src=pip.conf`: they are in no layer.
ARG BASE_IMAGE=python:3.13-slim
FROM ${BASE_IMAGE} AS build

COPY pyproject.toml README.md LICENSE /source/
COPY conformance /source/conformance
COPY harness /source/harness
COPY reports /source/reports
COPY cases /source/cases
ARG EXTRAS=containers,fuzz,storage
RUN --mount=type=secret,id=ca --mount=type=secret,id=pip \
    set -eu; \
    if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    if [ -s /run/secrets/pip ]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi; \
    python3 -m venv /opt/conformance; \
    /opt/conformance/bin/pip install --no-cache-dir --disable-pip-version-check "/source[${EXTRAS}]"

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="watermark-conformance" \
      org.opencontainers.image.source="https://github.com/watermark-conformance/watermark-conformance" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/conformance /opt/conformance
# Any user may write here, as `docker run --user` names one that the image does not know.
RUN mkdir -m 1777 /cache /work
ENV PATH=/opt/conformance/bin:$PATH \
    HOME=/cache \
    CONFORMANCE_CACHE=/cache
WORKDIR /work
USER 65534
ENTRYPOINT ["conformance"]
CMD ["--help"]
