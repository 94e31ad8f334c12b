"""Principal angles govern the decorrelation of heads, but only if keys are isotropic"""
