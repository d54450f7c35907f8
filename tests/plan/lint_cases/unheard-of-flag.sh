vllm serve org/some-model --gpu-mem-utilization 0.8
