"""The angle law of sparse attention: does the kernel's shape matter once n_eff is matched?"""
