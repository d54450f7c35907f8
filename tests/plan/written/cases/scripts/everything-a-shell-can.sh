#!/usr/bin/env bash
#: kind docker
#: name second
#: image org/vllm:1
#: engine vllm
#: line 50
#: env TOKEN $TOKEN
#: lost HF_HUB_OFFLINE 1
#: recipe 2
#: kind command
#: line 52
#: engine vllm
#: program exec
#: model org/model
#: env HF_HUB_OFFLINE 1
#: env HF_HOME $HOME/hf
#: flag --port 8001
#: flag --host 127.0.0.1
#: flag --served-model-name one two words
#: flag --max-model-len 65536
#: flag --speculative-config {"method": "mtp"}
#: flag --dtype auto
#: no-flag --api-key
#: no-flag --node-rank
#: no-flag --heredoc
#: no-flag --comment
#: says line 39 adds `--api-key $KEY` only under a condition
#: says line 42 adds `--node-rank 0` only under a condition
#: says `$HOME` is not set
#: says env.sh
#: says `$@` is what the script is called with
source ./env.sh
export HF_HUB_OFFLINE=1 HF_HOME="$HOME/hf"
PORT=${PORT:-8000}; MODEL=org/model  # --comment
PORT=$((PORT + 1)); PORT=8001
NAMES=(one "two words")
ARGS=("$MODEL" --port "$PORT")
EXTRA="--max-model-len 65536 --dtype auto"
[[ -n "${KEY:-}" ]] && ARGS+=(--api-key "$KEY")
if [ "${SPEC:-mtp}" = off ]; then :; else ARGS+=(--speculative-config "{\"method\": \"${SPEC:-mtp}\"}"); fi
case "${RANK:-}" in
  0|zero) ARGS+=(--node-rank 0) ;;
  *) : ;;
esac
for name in "${NAMES[@]}"; do echo "$name"; done
cat <<-'NOTE' > /dev/null
	vllm serve not/this --heredoc
	NOTE
start() {
  docker run --rm --name second -e TOKEN "$IMAGE" vllm serve "$MODEL"
}
exec env vllm serve "${ARGS[@]}" --host 127.0.0.1 \
  --served-model-name "${NAMES[@]}" $EXTRA "$@" 2>&1 | tee log &
wait
IMAGE=org/vllm:1
start
