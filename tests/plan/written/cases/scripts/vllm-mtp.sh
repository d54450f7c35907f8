#: kind command
#: engine vllm
#: model RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic
#: flag --speculative-config.method gemma4_mtp
#: flag --speculative-config.num_speculative_tokens 4
#: flag --enable-auto-tool-choice
#: flag --port 11437
#: silent line
vllm serve RedHatAI/gemma-4-26B-A4B-it-FP8-Dynamic \
--served-model-name gemma4-fp8-mtp \
--max-model-len 65536 \
--gpu-memory-utilization 0.45 \
--max-num-seqs 4 \
--enable-auto-tool-choice \
--tool-call-parser gemma4 \
--reasoning-parser gemma4 \
--port 11437 \
--speculative-config '{"method":"gemma4_mtp","model":"google/gemma-4-26B-A4B-it-assistant","num_speculative_tokens":4}'
