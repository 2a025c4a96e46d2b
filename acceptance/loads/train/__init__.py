"""Loads of training: transformer layers, training steps, digests of bits, parallel training."""
