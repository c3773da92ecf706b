// Made from the code by `make docs`; edit kagent/contract/words.py.
export const VERDICTS = {
  "balanced": "balanced",
  "rebalance": "uneven work",
  "hot_partition": "hot partition",
  "slow_member": "slow member",
  "stuck_member": "stuck member",
  "stalled": "stuck partition",
  "blocked_by_transaction": "open transaction",
  "under_provisioned": "too few members",
  "unstable": "many rebalances",
  "lost_data": "lost records",
  "idle_members": "idle members",
  "no_members": "no members"
};
export const ACTIONS = {
  "follow_plan": "follow the plan",
  "switch_assignor": "switch assignor",
  "set_member_count": "start consumers",
  "restart_member": "restart a member",
  "skip_or_fix_record": "fix or skip a record",
  "add_partitions_or_rekey": "add partitions or re-key",
  "raise_parallelism": "raise parallelism",
  "abort_transaction": "abort transaction",
  "reset_or_accept_loss": "raise retention",
  "wait": "wait",
  "none": "nothing"
};
export const WITH_NUMBERS = {
  "switch_assignor": [
    "strategy",
    "switch to {}"
  ],
  "set_member_count": [
    "members",
    "run {} members"
  ],
  "raise_parallelism": [
    "members",
    "parallelism {}"
  ],
  "restart_member": [
    "others",
    "restart several members"
  ]
};
