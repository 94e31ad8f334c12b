"""Do heads part because they are trained together, and is decorrelation what that gains?"""
