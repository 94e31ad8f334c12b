"""When weighing heads pays, and what estimating the weights costs"""
