docker run -p 127.0.0.1:8000:8000 vllm/vllm-openai:v0.33.0 org/some-model –max-model-len 4096
