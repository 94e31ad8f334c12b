"""Self-audit: does the judgement find planted falsehoods, and leave true claims alone?

Two parts, both on small problems whose truth exact theory gives to eight digits:

- :mod:`sims.audit.planting`: falsehoods (:mod:`sims.audit.mutations`) planted in theory or
  simulation, each of which must end *refuted* if its effect is at least twice the margin (power);
- :mod:`sims.audit.calibration`: claims that are exactly true, or exactly at their margin, over many
  independent runs (false alarms), and how often each kind of interval covers, also when it is
  watched all the time.
"""

from sims.audit.calibration import calibrate
from sims.audit.mutations import MUTATIONS, Mutation
from sims.audit.planting import plant

__all__ = ["MUTATIONS", "Mutation", "calibrate", "plant"]
