"""Self-audit: does the judgement find planted falsehoods, and leave true claims alone?

Three parts, the first two on small problems whose truth exact theory gives to eight digits:

- :mod:`sims.audit.planting`: falsehoods (:mod:`sims.audit.mutations`) planted in theory or
  simulation, each of which must end *refuted* if its effect is at least twice the margin (power);
- :mod:`sims.audit.calibration`: claims that are exactly true, or exactly at their margin, over many
  independent runs (false alarms), and how often each kind of interval covers, also when it is
  watched all the time;
- :mod:`sims.audit.tails`: how often skewed batches mislead an interval at the level of a ledger.
"""

from sims.audit.calibration import calibrate
from sims.audit.mutations import MUTATIONS, Mutation
from sims.audit.planting import plant
from sims.audit.tails import tails

__all__ = ["MUTATIONS", "Mutation", "calibrate", "plant", "tails"]
