# kdissect in a container: docker build -t kdissect . && docker run --rm -it -v "$PWD:/captures" kdissect orders.pcapng
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
RUN apt-get update \
 && apt-get install --yes --no-install-recommends libcap2-bin \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --create-home kdissect
COPY --from=build /opt/kdissect /opt/kdissect
# The one capability, on the one program: a user who is not root captures, if the container may (--cap-add=NET_RAW).
RUN setcap cap_net_raw+ep /opt/kdissect/bin/capturing-python \
 && ln -sf capturing-python /opt/kdissect/bin/python \
 && apt-get purge --yes --auto-remove libcap2-bin
USER kdissect
WORKDIR /captures
ENV PATH=/opt/kdissect/bin:$PATH TERM=xterm-256color
ENTRYPOINT ["kdissect"]
CMD ["--help"]
