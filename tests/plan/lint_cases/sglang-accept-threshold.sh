docker run -d --name sglang --gpus all --ipc host --publish 127.0.0.1:30000:30000 \
  -e SGLANG_ENABLE_SPEC_V2=True \
  -v /models/mistral-small-4-nvfp4:/model -v /models/mistral-small-4-eagle:/eagle \
  lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a \
  python -m sglang.launch_server --model-path /model --host 0.0.0.0 --port 30000 \
  --attention-backend triton \
  --moe-runner-backend flashinfer_cutlass \
  --mem-fraction-static 0.75 \
  --cuda-graph-max-bs 32 \
  --max-running-requests 16 \
  --tool-call-parser mistral \
  --enable-metrics \
  --speculative-algorithm EAGLE --speculative-draft-model-path /eagle \
  --speculative-eagle-topk 1 \
  --speculative-num-steps 3 --speculative-num-draft-tokens 4 --speculative-draft-accept-rate-threshold 0.3
