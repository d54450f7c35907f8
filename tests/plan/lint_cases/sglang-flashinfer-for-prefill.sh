docker run --gpus all -p 127.0.0.1:30000:30000 lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a python -m sglang.launch_server --model-path org/some-model --host 0.0.0.0 \
  --attention-backend triton --prefill-attention-backend flashinfer --mem-fraction-static 0.75
