docker run $(cat options) vllm/vllm-openai:v0.26.0 --enable-auto-tool-choice --model org/some-model
