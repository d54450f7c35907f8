"""Plans one model over several boxes: how it may be divided, what each box takes, what each is told, and whether it is
worth it. Pure.
"""
