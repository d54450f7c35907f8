vllm serve org/some-model --host 127.0.0.1
parallel -j2 vllm serve org/other-model --port {} ::: 8001 8002
echo "vllm serve org/some-model is up"
