"""Temporal latent attention: what it computes, what it saves, and what merging keys costs."""
