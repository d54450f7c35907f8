#: kind docker
#: name sglang-mistral4
#: engine sglang
#: model /model
#: image lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a
#: line 15
#: lost SGLANG_ENABLE_SPEC_V2 True
#: container network host
#: container restart unless-stopped
#: container gpus all
#: mount /ai/models/mistral-small-4-nvfp4 /model
#: flag --attention-backend triton
#: flag --speculative-eagle-topk 1
#: silent not
SGLANG_ENABLE_SPEC_V2=True docker run -d \
  --name sglang-mistral4 \
  --gpus all \
  --network host \
  --restart unless-stopped \
  -v /ai/models/mistral-small-4-nvfp4:/model \
  lmsysorg/sglang:nightly-dev-cu13-20260323-999bad5a \
  python -m sglang.launch_server \
  --model-path /model \
  --attention-backend triton \
  --speculative-eagle-topk 1 \
  --speculative-num-steps 3
