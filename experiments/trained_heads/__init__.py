"""Do the heads of an attention layer decorrelate as it is trained, and is that what it gains?"""
