"""Where queries have maps of their own, the subspaces of the keys no longer decide"""
