VLLM_API_KEY=x python3 -m vllm.entrypoints.openai.api_server org/some-model --host 127.0.0.1 --port 8000 --gpu-memory-utilization 0.7
