docker run --gpus all -p 127.0.0.1:11437:8000 vllm/vllm-openai:gemma4-0505-cu130 RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic \
--max-model-len 65536 --gpu-memory-utilization 0.45 --max-num-seqs 4 --enable-auto-tool-choice --tool-call-parser gemma4 \
--speculative-config '{"method":"gemma4_mtp","model":"google/gemma-4-26B-A4B-it-assistant","num_speculative_tokens":4}'
