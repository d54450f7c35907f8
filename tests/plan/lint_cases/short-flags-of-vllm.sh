docker run -p 127.0.0.1:8000:8000 vllm/vllm-openai:v0.33.0 org/some-model -O3 -cc.mode 3 -sc.method ngram -sc.num_speculative_tokens=4 -tp 1
docker run -p 127.0.0.1:8001:8000 vllm/vllm-openai:v0.20.2 org/some-model -O 3 -cc.cudagraph_mode=PIECEWISE
docker run -p 127.0.0.1:8001:8000 vllm/vllm-openai:v0.26.0 org/some-model -O=3 -O.level=3
