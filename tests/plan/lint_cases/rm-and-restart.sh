docker run --rm --restart unless-stopped --gpus all -p 127.0.0.1:8000:8000 vllm/vllm-openai:v0.26.0 --model org/some-model
