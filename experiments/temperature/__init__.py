"""Which attention rule keeps its error when the context grows while its temperature stays?"""
