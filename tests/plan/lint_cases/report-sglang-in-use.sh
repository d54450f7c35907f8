#!/bin/bash
# The command that one report has had in use for a month, as its author runs it.
SGLANG_ENABLE_SPEC_V2=True docker run -d \
--name sglang-mistral4 \
--gpus all \
--network host \
--ipc host \
--restart unless-stopped \
-v /ai/models/mistral-small-4-nvfp4:/model \
-v /ai/models/models--mistralai--Mistral-Small-4-119B-2603-eagle/snapshots/3ff299733b3dcb701617a22add5ce796304f7f05:/eagle \
lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a \
python -m sglang.launch_server \
--model-path /model \
--tokenizer-path /model \
--host 0.0.0.0 \
--port 30000 \
--attention-backend triton \
--moe-runner-backend flashinfer_cutlass \
--mem-fraction-static 0.75 \
--context-length 65536 \
--cuda-graph-max-bs 32 \
--max-running-requests 16 \
--speculative-algorithm EAGLE \
--speculative-eagle-topk 1 \
--speculative-num-draft-tokens 4 \
--speculative-num-steps 3
