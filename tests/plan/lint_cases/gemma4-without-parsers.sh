vllm serve RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic --host 127.0.0.1 --max-model-len 65536 --gpu-memory-utilization 0.45 --max-num-seqs 4
