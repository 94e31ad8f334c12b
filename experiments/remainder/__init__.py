"""What first-order theory leaves out"""
