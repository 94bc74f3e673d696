# kdissect in a container: docker build -t kdissect .
# A capture: docker run --rm -it --user "$(id -u)" -v "$PWD:/captures" kdissect orders.pcapng
# Live, beside another container: docker run --rm -it --net=container:NAME --cap-add=NET_RAW kdissect live -i any
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt hatch_build.py README.md LICENSE NOTICE ./
COPY dissector dissector
COPY tui tui
COPY pcaps pcaps
RUN python -m venv /opt/kdissect \
 && /opt/kdissect/bin/pip install --no-cache-dir --constraint constraints.txt . \
 && cp /usr/local/bin/python3.13 /opt/kdissect/bin/capturing-python

FROM python:3.13-slim
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libcap2-bin \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home --uid 1000 kdissect
COPY --from=build /opt/kdissect /opt/kdissect
# The one capability, on the one program: a user who is not root captures, if the container has it. Docker gives it by
# default, and where all are dropped, --cap-add=NET_RAW does. Not +ep: the kernel would refuse to start the program there.
# hadolint ignore=DL3059
RUN setcap cap_net_raw+p /opt/kdissect/bin/capturing-python \
 && ln -sf capturing-python /opt/kdissect/bin/python \
 && apt-get purge --yes --auto-remove libcap2-bin
USER 1000
WORKDIR /captures
ENV PATH=/opt/kdissect/bin:$PATH TERM=xterm-256color
ENTRYPOINT ["kdissect"]
CMD ["--help"]
