"""Stoker for agents: the Model Context Protocol over standard input and output.

`wire` knows the protocol's lines, `session` its methods, `loop` the two pipes. What an agent can do is in `tools/`: each
file defines `TOOLS`, found by listing the folder; a tool is a thin call of the flow that the command line uses too. Words
that come from logs, models or files that nobody checked are values of keys that begin with `untrusted` (`brief`).

Not the official SDK: see docs/decisions/0025. It judges this in the tests.
"""
