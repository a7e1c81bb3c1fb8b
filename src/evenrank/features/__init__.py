"""Features made from texts: transformer encoders and the cache of what they computed."""

from evenrank.features.encoder import Encoder, open_encoder

__all__ = ["Encoder", "open_encoder"]
