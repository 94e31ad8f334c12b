"""What every room uses: checks of input, files, seeds, errors of means, and labelled terms."""
