"""How fast the error of heads falls with the number of keys"""
