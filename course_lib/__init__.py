"""The small library under *Transformers, Measured*. One file, one idea; each file is also an answer key."""
