docker kill sglang-mistral4; docker restart sglang-mistral4
