"""Results of other benchmark tools as runs of ours, and ours as theirs. Pure: text in, records out, and back.

`read.py` knows each kind of file by what is in it. Nothing is guessed: a field that is missing or odd is an error that names
its place, one that we have no use for is named in the run's note, and a mean without values stays a mean (`names.py`).
"""
