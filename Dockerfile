# Lockstep built from source and installed. CUDA comes with the torch wheel; GPUs need the driver's container toolkit on
# the host.
#
#   docker build -t lockstep .
#   docker run --rm -it --gpus all --shm-size 8g -v "$PWD:/work" lockstep train tiny --nproc 2
FROM debian:12

# lockstep.sh installs the rest.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates git python3 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /src/lockstep
COPY . .

# As root, for apt. torch goes to /opt/lockstep, the programs to /usr/local.
ENV LOCKSTEP_CACHE=/opt/lockstep
RUN ./lockstep.sh install /usr/local -DLOCKSTEP_TESTS=OFF -DLOCKSTEP_BENCH=OFF -DLOCKSTEP_EXAMPLES=OFF \
    && lockstep --version \
    && rm -rf build ~/.cache /var/lib/apt/lists/*

RUN useradd --uid 1000 --create-home lockstep
USER 1000
WORKDIR /work
ENTRYPOINT ["lockstep"]
CMD ["--version"]
