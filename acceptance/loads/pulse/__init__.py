"""The power load: full load that comes and goes."""
