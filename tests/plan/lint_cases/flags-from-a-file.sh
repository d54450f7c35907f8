vllm serve org/some-model --host 127.0.0.1 $(cat flags)
