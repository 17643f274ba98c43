"""What may be concluded from a run's scores, and what may not: rates and means with their intervals, two runs compared, gates that may say they cannot tell.

Pure: numbers in, frozen values out. Randomness comes from a seed that the caller keeps.
"""
