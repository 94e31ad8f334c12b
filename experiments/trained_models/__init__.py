"""Do overlaps of trained heads say which of them a layer can spare?"""
