"""From observations to published messages: the evaluation session."""
