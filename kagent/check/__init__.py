"""One judgement of a cluster without a worker: `kagent check`."""
