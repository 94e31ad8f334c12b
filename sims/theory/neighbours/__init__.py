"""Laws of the neighbouring papers, one module each; derivations: docs/theory/."""
