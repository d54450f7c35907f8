# Written by Stoker: rule gemma4-mtp-drafter-half-sized

FROM vllm/vllm-openai:gemma4-0505-cu130@sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd AS sources
RUN command -v git >/dev/null || { apt-get update && apt-get install -y --no-install-recommends git ca-certificates; }
# One commit by its hash, which git checks against what it gets; a branch would be another program every day.
RUN set -eu; git init -q /sources; cd /sources; \
    git fetch -q --depth=1 https://github.com/vllm-project/vllm.git 0123456789abcdef0123456789abcdef01234567; \
    git checkout -q --detach FETCH_HEAD; \
    test "$(git rev-parse HEAD)" = 0123456789abcdef0123456789abcdef01234567

# A second stage, so that neither git nor the sources stay in the image.
FROM vllm/vllm-openai:gemma4-0505-cu130@sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd
# Only what the repository holds is replaced. The compiled parts (.so) and the generated version file stay: they fit this
# machine's GPU and CUDA, and fit the sources as long as the commit is near the one that they were built from.
RUN --mount=type=bind,from=sources,source=/sources,target=/sources set -eu; \
    place=$(python3 -c 'import importlib.util as u; print(u.find_spec("vllm").submodule_search_locations[0])'); \
    cp -R /sources/vllm/. "$place"/; \
    python3 -m compileall -q "$place"
LABEL stoker.overlay.base="vllm/vllm-openai:gemma4-0505-cu130@sha256:cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd" stoker.overlay.commit="0123456789abcdef0123456789abcdef01234567"
