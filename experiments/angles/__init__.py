"""Principal angles govern the decorrelation of heads"""
