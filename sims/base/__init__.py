"""Common to all packages: checks of input, files, seeds, errors of means, labelled terms."""
