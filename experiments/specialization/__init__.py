"""Do heads that learn become diverse, and is that why they get better?"""
