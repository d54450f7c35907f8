"""Several boxes behind one door: joining, following and choosing."""
