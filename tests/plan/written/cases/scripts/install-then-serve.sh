#: kind docker
#: engine vllm
#: image nvcr.io/nvidia/vllm:26.05-py3
#: model org/model
#: env VLLM_USE_V1 1
#: flag --port 8000
#: program docker
docker run --gpus=all nvcr.io/nvidia/vllm:26.05-py3 \
  bash -lc "pip install -q fastsafetensors && export VLLM_USE_V1=1 && vllm serve org/model --port 8000"
