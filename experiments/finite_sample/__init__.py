"""Where first-order theory of attention stops being true"""
