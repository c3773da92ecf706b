"""PySpark: the stream from ``__consumer_offsets`` to group events, the history and the backtest."""
