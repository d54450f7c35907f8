"""What a log says of a failure: which rule's sign is in it, in whose scope, and which of them is the cause. Pure.

bytes -> `blocks` of whole lines -> `scan`: lines that no sign can be in are left out -> `heard`: what was found in the last
start -> `clues`: engine, version, flags and GPU as the log tells them -> `judge`: findings, noise, or "I don't know"
-> `sentence`: the same where there is room for one -> `remedy`: a changed wish; `redactor`: what may leave the machine

The rules say what is known (`rules/data`); nothing in this room knows a fault by name.
"""
