"""A head count alone buys nothing"""
