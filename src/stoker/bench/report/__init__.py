"""Pictures of a run: what to draw (`charts.py`, pure), as SVG of our own, and as a page that needs no network.

The page draws with uPlot 1.6.32 (MIT, `assets/LICENSE.uPlot`), which lies in it whole.
"""
