#: engine llamacpp
#: model org/model-GGUF:Q8_0
#: flag -c 8192
#: flag -ngl 99
#: says line 7: blanks follow the backslash
#: says line 9: a comment after a backslash
llama-server -hf org/model-GGUF:Q8_0 -ngl 99 \  
  -c 8192 \
  # --port 8080
