docker run -d --gpus all -p 127.0.0.1:30000:30000 scitrera/dgx-spark-sglang:0.5.12 \
python -m sglang.launch_server --model-path Qwen/Qwen3.6-27B-FP8 --host 0.0.0.0 --attention-backend triton --mem-fraction-static 0.75 \
--speculative-algorithm NEXTN --speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 20
