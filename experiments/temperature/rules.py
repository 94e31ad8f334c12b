"""The rules, for simulation, figure and statistic."""

MATCHED = "α-entmax with ν = β"
"""Name of the α-entmax of each problem whose power is the smoothness of its targets."""
POWERS = {"sparsemax": 1.0, "5/3-entmax": 1.5, "1.5-entmax": 2.0, "4/3-entmax": 3.0}
"""α-entmax by the power ν of its kernel."""
SIMULATED = 16
"""Number of keys over that of the tuned context that is simulated, and from which exponents are."""
LOG = ", log n"
"""What names a rule whose scores grow like log n."""
