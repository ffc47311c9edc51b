"""Predictive Credit: does an explanation help a fixed forecaster predict the executed outcome?"""

__version__ = "0.1.0"
