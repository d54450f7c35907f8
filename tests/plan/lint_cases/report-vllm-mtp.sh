vllm serve Qwen/Qwen3.6-27B-NVFP4 --host 127.0.0.1 --max-model-len 8192 --gpu-memory-utilization 0.8 --enable-auto-tool-choice \
--tool-call-parser qwen3_coder --max-num-seqs 8 --speculative-config '{"method":"mtp","num_speculative_tokens":3}'
