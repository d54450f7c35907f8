#!/bin/bash
docker run -d --name sglang --gpus all --ipc host -p 127.0.0.1:30000:30000 lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a \
  python -m sglang.launch_server --model-path mistralai/Mistral-Small-4-119B-2603-NVFP4 --host 0.0.0.0 \
  --attention-backend triton --mem-fraction-static 0.75 --cuda-graph-max-bs 32 --max-running-requests 16 --tool-call-parser mistral
docker run -d --name voxtral --gpus all --ipc host -p 127.0.0.1:8000:8000 vllm/vllm-openai:v0.26.0 mistralai/Voxtral-4B-TTS-2603
