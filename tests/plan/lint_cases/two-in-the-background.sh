nohup vllm serve org/first --host 127.0.0.1 --gpu-memory-utilization .6 > first.log &
vllm serve org/second --host 127.0.0.1 --port 8001 --gpu-memory-utilization 0.45
