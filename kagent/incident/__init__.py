"""From what was observed to what is said: the evaluation that worker, check, backtest, simulator and replay share."""
