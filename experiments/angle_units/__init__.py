"""What the angle law hangs on: the unit of the bandwidth, the measure, the law of the keys"""
