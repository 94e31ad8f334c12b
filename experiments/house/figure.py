"""Figure of the house: sizes, outcomes and what they are made of."""
from sims import figures
def figure(results, answers):
    drawing, axes = figures.panels(1,1,width=figures.COLUMN,title="t")
    return drawing
def headline(results):
    return None
