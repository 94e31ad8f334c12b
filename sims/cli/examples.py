"""Examples of every command, which its help begins with."""

EXAMPLES = {
    "decompose": """
sims decompose problem.yaml                   theory and simulation
sims decompose problem.yaml --dry             expected time and memory
sims decompose house#17 --rel-mcse 0.01       problem 17 of a law
""",
    "sweep": """
sims sweep sweep.yaml
sims sweep problem.yaml --set heads.bandwidth=0.3:1:5 --set n=64,256
sims sweep sweep.yaml --shards 8 -- --workflow-profile slurm
""",
    "experiments": """
sims experiments
sims experiments --json
""",
    "run": """
sims run rates --fidelity smoke               about a minute
sims run house --dry                          the plan only
""",
    "claims": """
sims claims --paper 2605.20271                one paper
sims claims --fidelity smoke                  answers of your last smoke run
""",
    "new": """
sims new mine && sims run mine
sims new mine --statistic                     with your own statistic and its test
""",
    "schema": """
sims schema problem                           fields of a problem
sims schema experiment > schema.json          for your editor
""",
    "inspect": """
sims inspect model.safetensors                weights only
sims inspect model --activations x.npz --output report.nc
sims inspect model --activations x.npz --fail-above redundant_share=0.2
sims inspect model --compare report.nc        differences from a written report
""",
    "advise": """
sims advise --data train.csv --target y       heads for your data
sims advise --n 16384 --budget 64 --noise 2   a split of a budget
sims advise --context 4k:128k --rule softmax  a longer context
""",
}
"""Name of a command to its examples, one per line, with a comment where one helps."""
