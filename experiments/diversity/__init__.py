"""Does the error fall as the Head Diversity Index rises?"""
