#: kind docker
#: engine sglang
#: image org/sglang:dev
#: model org/model
#: line 10
#: container gpus all
#: flag --port 30000
#: says started by hand
docker run --gpus all -it --rm -p 30000:30000 org/sglang:dev bash
python3 -m sglang.launch_server --model-path org/model --port 30000
