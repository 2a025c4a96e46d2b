"""The container's image: built from this checkout where it is missing, and its contents.

`rigproof image build` (`make image`) builds it from the command line.
"""
