"""What is known to crash, to run out of memory, to be slow or to mislead: data with evidence, and how it is matched.

A rule (`records.rule.Rule`, one `[[rule]]` table in `data/FOLDER/*.toml`) speaks of a situation by names:

| name          | what it is                                                                                          |
|---------------|-----------------------------------------------------------------------------------------------------|
| `--flag`      | an option of the engine, by its long name; its value, or all of them                                 |
| `$NAME`       | a variable that reaches the engine; `lost$NAME` one that was set where it does not                   |
| `docker:name` | a docker option by its long name (`docker:network`); compose and quadlet keys are turned into these   |
| `unit:Name`   | a systemd directive (`unit:MemoryMax`)                                                               |
| `grant`       | a line of a sudoers file                                                                             |
| a bare word   | a fact of machine, model or plan; `FACTS` lists them                                                 |

and tests them with these values:

| test                        | holds when                                                                            |
|-----------------------------|---------------------------------------------------------------------------------------|
| `"text"`, `3`, `true`       | it is that; text without regard to case, `*` stands for anything                      |
| `["a", "b"]`                | any of these tests holds                                                              |
| `">0.85"`, `">=0.5.12,<0.6"`| a number or a version lies there                                                      |
| `"set"`, `"absent"`         | it was given, with whatever value; it was not given                                   |
| `"!TEST"`                   | the test does not hold                                                                |

`drop = ["{flags}"]` and `use = { "--max-model-len" = "{tokens}" }` take their word from the line that a sign found: from the
sign's group of that name, flags or a whole number, and nothing else.

`prefer = { "rank$NAME" = "{address}" }` sets a variable for each machine of several that serve one model: `{address}` and
`{interface}` are its own on their link, `{devices}` its RDMA devices there; `{ray}` is where Ray's head is reached, for
the head alone.

A fact that nobody knows makes a test neither hold nor fail: the finding then is a warning that says what it hangs on.
"""

from __future__ import annotations

FACTS = {
    "engine": "sglang, vllm, llamacpp, or another engine's name",
    "version": "the engine's version where it is known",
    "build": "the image's tag, where there is an image",
    "image": "the image without its tag",
    "sm": "compute capability, such as 12.1",
    "unified": "whether processor and GPU share their memory",
    "arch": "aarch64 or x86_64",
    "memory_gib": "the machine's memory",
    "driver": "the NVIDIA driver's version",
    "cuda": "the CUDA version that the driver offers",
    "model": "the model's hub name or folder, in lower case",
    "architecture": "such as LlamaForCausalLM or qwen3moe",
    "model_type": "config.json's model_type",
    "quantisation": "nvfp4, fp8, mxfp4, awq, gptq, bf16, q4_k_m ...",
    "format": "gguf or safetensors",
    "moe": "whether the model has experts",
    "hybrid": "whether some layers keep a state instead of a cache",
    "mla": "whether the model compresses its cache (MLA)",
    "vision": "whether the model takes images",
    "tools": "whether the chat template knows tools",
    "thinking": "whether the chat template knows thinking",
    "model_unread": "whether the model stands where the program does not look for it",
    "missing": "the names of files that the model lacks",
    "weights_gib": "the size of the weights",
    "weights_share": "weights and draft as a share of the machine's memory, 0 to 1",
    "draft": "the draft model's name",
    "draft_share": "the draft's size as a share of the model's",
    "speculation": "off, ngram, draft, eagle, eagle3, mtp, nextn, dflash, or what the engine calls it",
    "context": "tokens a request may use",
    "concurrency": "requests answered at once",
    "memory_share": "what the engine may take of the memory, 0 to 1",
    "graph_batch": "the largest batch for which graphs are captured",
    "graph_below_concurrency": "whether more requests may run than graphs were captured for",
    "open_to_network": "whether the engine listens beyond loopback",
    "has_key": "whether the engine asks for a key",
    "privileged_ports": "whether it listens below 1024",
    "nodes": "machines over which the model is spread",
    "ranks": "the same while Stoker itself plans it over several",
    "executor": "what starts the engine's processes on those: mp or ray",
    "nccl_nodes": "machines that NCCL says it joined",
    "lost": "the names of all variables that were set where they reach no engine",
    "image_arch": "the architectures that the image was built for, where they are known",
    "together_share": "what this service and those that run take together, as a share of the machine's memory",
    "restarts": "what starts an engine's container again at once: docker's policy, or now for `docker restart`",
    "cuda_share": "what CUDA sees of the machine's memory, 0 to 1, where it was measured",
    "busy_clock_mhz": "the GPU's clock while it is busy, where it was measured",
    "client": "the program that asks: vibe, litellm, open-webui, ... (`stoker clients check`)",
    "client_host": "the host in the address that it asks, where that is no service on the internet",
    "client_base": "the path of that address: /v1, or / for none",
    "client_port": "who listens on its port of this machine: gateway, engine, other, or nobody",
    "client_model": "served or unknown: whether the gateway has the model that it asks for",
    "client_context": "the context of the model that it asks for, in tokens",
    "client_key": "open: a key in a file that others may read, text: in a private file, shell: a variable not looked up",
    "client_sets": "what it sets: fallbacks, drop_params, retries, prompt extensions, all addresses",
    "client_lacks": "what it does not set: small_model, package, tool_use, fresh settings",
    "mcp": "what is odd in MCP servers: table, map, no transport, no command, twice, disabled, downloads, slow, late, dead",
    "filters": "the filters of the service that answers",
    "share_below_weights": "whether the engine's share of the memory is smaller than the weights",
}
