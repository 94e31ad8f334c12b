"""How to split a budget into heads"""
