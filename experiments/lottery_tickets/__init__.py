"""Strong lottery tickets: how wide has a random attention layer to be?"""
