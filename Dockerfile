# syntax=docker/dockerfile:1
# One image for everything: `serve` by default, `queue` or any other command of manage.py as the argument.

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
COPY requirements.lock ./
# Wheels alone: nothing is compiled, so no compiler is needed here either.
RUN python -m venv /venv && /venv/bin/pip install --only-binary=:all: --require-hashes -r requirements.lock
COPY manage.py ./
COPY access access
COPY benchwarmers benchwarmers
COPY catalog catalog
COPY examples examples
COPY health health
COPY panels panels
COPY suite suite
COPY templates templates
COPY wire wire
COPY client client
COPY scripts/healthcheck.py scripts/healthcheck.py
# The commands, for `docker compose exec`.
RUN printf '#!/venv/bin/python\nimport sys\nsys.path.insert(0, "/app/client/src")\nfrom benchwarmers_client.main import main\nmain()\n' \
    | tee /venv/bin/bench >/venv/bin/benchwarmers \
    && printf '#!/venv/bin/python\nimport sys\nsys.path.insert(0, "/app/client/src")\nfrom benchwright.cli.main import main\nmain()\n' >/venv/bin/benchwright \
    && chmod +x /venv/bin/bench /venv/bin/benchwarmers /venv/bin/benchwright
# Static files once, at build time. The data folder and the secret of this step stay in it.
RUN BENCHWARMERS_HOME=/tmp/build BENCHWARMERS_SECRET_KEYS=used-for-this-step-only /venv/bin/python manage.py collectstatic --noinput --verbosity 0 \
    && /venv/bin/python -m compileall -q . \
    # pip is not needed to run, and is one thing less to keep up to date.
    && rm -rf /venv/lib/python3.12/site-packages/pip /venv/lib/python3.12/site-packages/pip-*.dist-info /venv/bin/pip*

FROM python:3.12-slim
LABEL org.opencontainers.image.title="Benchwarmers" org.opencontainers.image.licenses="MIT"
# bubblewrap, for the service that runs scorers; elsewhere it may make nothing, and nothing asks it to.
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap && rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home --home-dir /home/bench bench && install -d -o bench -g bench -m 700 /data
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    BENCHWARMERS_HOME=/data \
    # Inside the container; who reaches it is what is published. It will not start without BENCHWARMERS_ADMIN_TOKEN.
    BENCH_HOST=0.0.0.0 \
    BENCH_PORT=8122
USER bench
VOLUME /data
EXPOSE 8122
# Until the queue has rung for the first time a server is not ready: hence the start period.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --start-interval=2s --retries=3 CMD ["python", "scripts/healthcheck.py"]
# serve reaps orphans itself, so no init is needed. It ends open streams gracefully: give it more than BENCH_GRACEFUL_TIMEOUT_S.
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "manage.py"]
CMD ["serve", "--no-browser"]
