case "$1" in
  first) docker run -d --name first vllm/vllm-openai:v0.26.0 org/first --gpu-memory-utilization 0.8 ;;
  *) docker run -d --name second vllm/vllm-openai:v0.26.0 org/second --gpu-memory-utilization 0.8 ;;
esac
