"""How late a group is: its commits and log ends, lag as an interval, membership, workload and service rates. Pure."""
