"""Many connections in one: all that a door asks of another box at once goes over one TLS connection (decisions/0044).

`frames` is what is on the wire, `channel` one of the many connections, and `trunk` what carries them. `trunks` are those
that a door has to other boxes, `greeting` lets one in.
"""
