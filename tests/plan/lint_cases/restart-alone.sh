docker restart sglang-mistral4
