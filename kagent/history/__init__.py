"""The history in Delta tables, and what is made of it: backtest, calibration, report, hot keys."""
