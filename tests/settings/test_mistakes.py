"""Every mistake in the settings is named at once, with its line or variable and a suggestion where one is near."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from kagent import policy
from kagent.cli import root
from kagent.commands.settings import json_schema
from kagent.errors import SettingsError
from kagent.reference_pages import DOCS, PAGES
from kagent.settings import load, loaded_from
from kagent.settings.loading import Loaded

JAVA = {
    "keystore_location": "make PEM files of it, for cert_file and key_file",
    "ssl.keystore.password": "make PEM files of it, for cert_file and key_file",
    "ssl_truststore_type": "make a PEM file of it, for ca_file",
    "ssl.enabled.protocols": "TLS negotiates that by itself",
    "enable.ssl.certificate.verification": "certificates and host names are always checked",
    "ssl.key.pem": "a PEM stands in a file",
    "sasl.jaas.config": "the login stands in username and password",
    "sasl.login.callback.handler.class": "kagent does not log in by that",
    "sasl.mechanism": "did you mean mechanism?",
    "security_protocol": "did you mean protocol?",
    "ssl.ca.location": "did you mean ca_file?",
    "ssl.key.password": "did you mean key_password?",
}
"""Names of Kafka's clients in `security` → what is said of them."""
MISTAKES = [
    ("pipeline: {trigger: 1 fortnight}", "not '1 fortnight'; did you mean 14d?"),
    ("worker: {tick: [10]}", "not [10]; write 10"),
    ("pipeline: {max_offsets_per_trigger: many}", "not 'many'; the default is 2000000"),
    ("pipeline: {trigger_interval: 5}", "did you mean trigger?"),
    ("pipeline: {max_offsets: 5}", "did you mean max_offsets_per_trigger?"),
    ("worker: {webPort: 5}", "did you mean web_port?"),
    ("clusters: {main: {bootstrap: 5}}", "clusters.main.bootstrap: must be a text"),
    ("clusters: {main: {bootstrap: 'a:1', securty: {}}}", "did you mean security?"),
    ("clusters: {'b d': {bootstrap: 'a:1'}}", "no name for a cluster"),
    ("clusters: {main: {}}", "clusters.main.bootstrap: is missing"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL-SSL}}}", "did you mean SASL_SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {mechanism: SCRAM-SHA-521}}}", "did you mean SCRAM-SHA-512?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL}}}", "needs username"),
    ("clusters: [a]", "clusters: must hold names and values"),
    ("hom: main", "did you mean home?"),
    ("{clusters: {main: {bootstrap: 'a:1'}}, home: mian}", "did you mean main?"),
    ("policy: {threshold: 2,5}", "a decimal number has a point, as in 1.5"),
    ("groups: [orders-*]", "groups[0]: must hold names and values, not 'orders-*'; write {match: 'orders-*'}"),
    ("clusters: {main: {bootstrap: ['a:1', 'b:2']}}", "write a:1,b:2"),
    ("topics: {prefx: a}", "did you mean prefix?"),
    ("worker: {http: {user: a}}", "kagent's page has no users: write login: token with token"),
    ("worker: {http: {password: a}}", "write login: token with token, or login: proxy"),
    ("alert: {only: {severity: page}, destinations: {}}", "write destinations: {NAME: {only: …}}"),
    ("clusters: {main: {bootstrap: 'b:1', security.protocol: SSL}}", "write security: {protocol: …}"),
    ("clusters.main.bootstrap: b:9092", "write clusters: {main: {bootstrap: …}}"),
    ("worker: {http.login: token}", "write http: {login: …}"),
    ("policy: {owner: [team-a, team-b]}", "write 'team-a, team-b'"),
    ("clusters: {main: {bootstrap: 'a:1,b:2,'}}", "there is a comma too many; did you mean a:1,b:2?"),
    ("receivers: [{name: a}]", "did you mean alert.destinations?"),
    ("route: {receiver: a}", "did you mean alert.destinations?"),
    ("notifier: {x: 1}", "did you mean alert.destinations?"),
    ("worker: {web_port: 0x1F90}", "did you mean 8080?"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://a:9093/#/alerts'}}}", "the address without # and what follows"),
    ("policy: {tolerance: 5}", "must be at most 1, not 5; did you mean 0.05?"),
    ("pipeline: {executor_memory: 2g}", "pipeline.options by their whole names, such as spark.executor.memory"),
    ("topics: {partitions: 0}", "topics.partitions: must be at least 1, not 0"),
    ("topics: {partitions: 51}", "must be at most 50"),
    ("topics: {replication: three}", "must be a whole number, not 'three'"),
    ("pipeline: {triger: 5}", "did you mean trigger?"),
    ("pipeline: {trigger: soon}", "must be a duration such as"),
    ("pipeline: {trigger: 0s}", "must be above 0"),
    ("pipeline: {master: locl}", "must be local[n], spark://"),
    ("pipeline: {driver_memory: 1 gig}", "such as 512m or 2g"),
    ("pipeline: {metrics_port: 99999}", "must be at most 65535"),
    ("pipeline: 5", "pipeline: must hold names and values"),
    ("worker: {tick: -5}", "worker.tick: must be above 0"),
    ("worker: {web_port: http}", "worker.web_port: must be a whole number"),
    ("worker: {store: rocksdb}", "must begin with memory:// or rocksdb://, not 'rocksdb'; did you mean rocksdb://?"),
    ("worker: {max_groups: 1.5}", "must be a whole number, not 1.5"),
    ("policy: {treshold: 2}", "policy.treshold: there is no setting treshold; did you mean threshold?"),
    ("policy: {threshold: 1}", "policy.threshold: must be above 1"),
    ("pipeline: {driver_memory: 2GB}", "pipeline.driver_memory: must be a number with a unit, such as 512m or 2g, not '2GB'; did you mean 2g?"),
    ("pipeline: {driver_memory: 512 MiB}", "did you mean 512m?"),
    ("policy: {lower_threshold: 2}", "must not be above threshold (1.5)"),
    ("policy: {idle_after: null}", "must be a duration such as 250ms, 90s, 5m, 2h or 1d, and is empty"),
    ("policy: {severity: page}", "policy.severity: must hold names and values, not 'page'; write such as {no_members: page}"),
    ("clusters: {main: {bootstrap: 'a:1', security: SASL_SSL}}", "write {protocol: SASL_SSL}"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, mechanism: SCRAM-SHA-256}}}", "mechanism is not used with protocol SSL; did you mean SASL_SSL?"),
    ("groups: [{match: a, policy: {threshold: 2}}]", "there is no setting policy here; write what it holds without it"),
    ("alert: {destinations: {x: {type: email}}}", "did you mean apprise, with url: mailto://…?"),
    ("alert: {destinations: {x: {type: teams}}}", "did you mean apprise, with url: workflow://…?"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'am:9093'}}}", "alert.destinations.x: url must be an http:// or https:// address"),
    ("policy: {min_gain: 1.5}", "must be below 1"),
    ("policy: {max_moves: 0}", "must be at least 1"),
    ("policy: {cooldown: 5x}", "policy.cooldown: must be a duration"),
    ("policy: {kind: kafka_stream}", "policy.kind: must be classic_java"),
    ("policy: {severity: {rebalanse: page}}", "did you mean rebalance?"),
    ("policy: {severity: {stalled: pager}}", "did you mean page?"),
    ("policy: {runbook_url: wiki}", "must be an http:// or https:// URL"),
    ("policy: {stateful: maybe}", "must be true or false, not 'maybe'"),
    ("policy: {reset_policy: latst}", "did you mean latest?"),
    ("policy: {labels: [a]}", "policy.labels: must hold names and values"),
    ("groups: [{match: '/(/'}]", "groups[0].match: '/(/' is no regular expression"),
    ("groups: [{owner: b}]", "groups[0].match: is missing"),
    ("groups: [{match: 'a*', min_behnd: 5}]", "did you mean min_behind?"),
    ("groups: [{match: 'a*', threshold: 1.1, lower_threshold: 1.2}]", "lower_threshold: must not be above threshold (1.1)"),
    ("groups: {match: a}", "groups: must be a list"),
    ("ignore: ['a', '/[/']", "ignore[1]: '/[/' is no regular expression"),
    ("policy: {auto_offset_reset: latest}", "did you mean reset_policy?"),
    ("redact: [hosts]", "did you mean host?"),
    ("alert: {destinations: {pd: {type: pagerdty}}}", "did you mean pagerduty?"),
    ("alert: {destinations: {am: {type: alertmanager, url: 'http://far.example'}}}", "plain http"),
    ("alert: {destinations: {wh: {type: webhook}}}", "needs url or url_file"),
    ("alert: {destinations: {x: {url: a}}}", "type is missing"),
    ("alert: {destinations: {a/b: {type: apprise, url: 'json://y'}}}", "must not hold a slash"),
    ("alert: {destinations: {x: {type: apprise, url: 'json://localhost', only: {verdicts: [stald]}}}}", "did you mean stalled?"),
    ("alert: {destinations: {x: {type: apprise, url: 'json://localhost', only: {groups: ['/*/']}}}}", "no regular expression"),
    ("data: 5", "data: must be a text, and YAML reads a number"),
    ("data: [a]", "data: must be a text"),
    ("topics: {prefix: 'a b'}", "letters, digits, dot, dash and underscore only"),
    ("clusters: {main: {bootstrap: 'http://a:1'}}", "'http://a:1' is no host:port"),
    ("clusters: {main: {bootstrap: 'a:99999'}}", "'a:99999' is no host:port"),
    ("clusters: {main: {bootstrap: 'a:1,'}}", "there is a comma too many; did you mean a:1?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {username: u}}}", "did you mean SASL_SSL?"),
    ("clusters: {main: {bootstrap: 'a;9092'}}", "'a;9092' is no host:port; did you mean a:9092?"),
    ("clusters: {main: {bootstrap: '${KAFKA}'}}", "variables are not replaced in the file"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, password: p}}}", "did you mean SASL_SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, key_password: p}}}", "needs cert_file and key_file"),
    ("topics: {prefix: '" + 201 * "x" + "'}", "must have at most 200 characters"),
    ("pipeline: {history: 'hdfss://x/y'}", "pipeline.history: Spark has no file system hdfss://"),
    ("pipeline: {history: 's3://bucket/x'}", "did you mean s3a?"),
    ("pipeline: {checkpoint: 'htps://x'}", "pipeline.checkpoint: Spark has no file system htps://"),
    ("pipeline: {driver_memory: 100m}", "must be at least 450m"),
    ("pipeline: {master: 'local[x]'}", "must be local[n]"),
    ("pipeline: {master: 'spark://'}", "must be local[n]"),
    ("pipeline: {connector: 'a:b_2.12:3.5.0'}", "is built for Scala 2.12"),
    ("pipeline: {options: {executor.cores: '4'}}", "did you mean spark.executor.cores?"),
    ("pipeline: {trigger: 1 secs}", "did you mean 1s?"),
    ("policy: {min_behind: 5M}", "did you mean 5m?"),
    ("policy: {kind: java}", "did you mean classic_java?"),
    ("pipeline.trigger: 5", "write pipeline: {trigger: …}"),
    ("groups: [{match: 'a*', owner: no}]", "YAML reads true or false: put it in quotes"),
    ("groups: [{match: 2024-01-01}]", "YAML reads a date: put it in quotes"),
    ("alert: {destinations: [{url: 'https://x.example/hidden'}]}", "must hold names and values, not a list"),
    ("alert: {destinations: {x: {type: slack}}}", "did you mean apprise, with url: slack://…?"),
    ("alert: {destinations: {x: {type: apprise, url: 'slak://a/b/c'}}}", "no service slak://; did you mean slack://?"),
    ("alert: {destinations: {x: {type: apprise, url: 'slack://'}}}", "the url of slack:// is not complete"),
    ("alert: {destinations: {x: {type: pagerduty, routing_key: ''}}}", "routing_key is empty"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://am/api/v2'}}}", "without /api/v2"),
    ("policy: {threshold: .inf}", "policy.threshold: must be a finite number"),
    ("policy: {cooldown: 1:30}", "policy.cooldown: must be a duration such as"),
    ("worker: {tick: 1e9}", "worker.tick: must be at most 3600"),
    ("worker: {http: {proxy_header: 'X Y'}}", "must be the name of a header"),
    ("worker: {http: {public_url: ops.example}}", "must be an address such as https://ops.example/kagent"),
    ("groups: [{match: ''}]", "groups[0].match: must not be empty"),
    ("ignore: ['']", "ignore[0]: must not be empty"),
    ("home: a\nhome: b", "home: is given twice (first at line"),
    ("bootstrap: 'a:1'", "there is no setting bootstrap; it belongs in clusters.<name>.bootstrap"),
    ("topics: {threshold: 2}", "there is no setting threshold; it belongs in policy.threshold"),
    ("worker: {state_interval: 2d}", "worker.state_interval: must be at most 3600 s, not '2d'"),
    ("worker: {keep_resolved_hours: -1}", "must be above 0 h, not -1"),
    ("topics: {retention_hours: 90m}", "topics.retention_hours: must be a whole number of hours, not '90m'"),
    ("policy: {reset_policy: Latest}", "not 'Latest'; did you mean latest?"),
    ("policy: {min_gain: 15%}", "policy.min_gain: must be a number, not '15%'"),
    ("policy: {hold: P5M}", "must be a duration such as"),
    ("policy: {severity: page}", "policy.severity: must hold names and values, not 'page'"),
    ("policy: {labels: {team: [a, b]}}", "policy.labels.team: must be a text"),
    ("groups: [{match: ['a*', 'b*']}]", "groups[0].match: must be a text"),
    ("groups: ['orders-*']", "groups[0]: must hold names and values, not 'orders-*'"),
    ("redact: {host: true}", "redact: must be a list"),
    ("pipeline: [{trigger: 1s}]", "pipeline: must hold names and values"),
    ("clusters: {main: {bootstrap: ['a:1', 'b:1']}}", "clusters.main.bootstrap: must be a text"),
    ("clusters: {main: {bootstrap: 'a 9092'}}", "'a 9092' is no host:port; did you mean a:9092?"),
    ("clusters: {main: {bootstrap: 'a, 9092'}}", "'9092' is no host; did you mean a:9092?"),
    ("clusters: {main: {bootstrap: 'a:1;b:1'}}", "'a:1;b:1' is no host:port"),
    ("clusters: {main: {bootstrap: 'a:1', security: SASL_SSL}}", "security: must hold names and values, not 'SASL_SSL'"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, key_file: k}}}", "cert_file and key_file belong together"),
    ("clusters: {main: {bootstrap: 'a:1', security: {ca_file: c}}}", "ca_file is not used with protocol PLAINTEXT; did you mean SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, username: u, password: p, password_file: f}}}", "not both"),
    ("worker: {http: {login: token, token: a, token_file: b}}", "not both"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{{ group'}}}", "is no Jinja2 template"),
    ("cluster: {main: {bootstrap: 'a:1'}}", "there is no setting cluster; did you mean clusters?"),
    ("Clusters: {main: {bootstrap: 'a:1'}}", "there is no setting Clusters; did you mean clusters?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: sasl_ssl, username: u, password: p}}}", "did you mean SASL_SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, truststore: /x.jks}}}", "a Java keystore is not read: make a PEM file of it, for ca_file"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, username: u, password_file: p, password: {a: b}}}}", "password: must be a text; write password_file: /path/to/file."),
    ("clusters: {main: {bootstrap: 'SASL_SSL://a:9092'}}", "'SASL_SSL://a:9092' is no host:port"),
    ("clusters: {main: {bootstrap: 'a:9092 b:9092'}}", "'a:9092 b:9092' is no host:port"),
    ("clusters: {main: }", "clusters.main: must hold names and values, and is empty"),
    ("clusters: {main: {bootstrap: 'a:1', cluster_id: 12}}", "cluster_id: must be a text, and YAML reads a number: put it in quotes"),
    ("home: [main]", "home: must be a text, not ['main']"),
    ("topics: {retention: 24}", "did you mean retention_hours?"),
    ("topics: kagent-", "topics: must hold names and values, not 'kagent-'"),
    ("pipeline: {history: true}", "pipeline.history: must be a text such as /var/lib/kagent/history, not true"),
    ("pipeline: {connector: spark-sql-kafka}", "must be Maven coordinates, group:artifact:version"),
    ("pipeline: {trigger: '5 second s'}", "must be a duration such as 250ms, 90s"),
    ("pipeline: {history_interval: 100ms}", "must be at least 1 s, not '100ms'"),
    ("pipeline: {driver_memory: 512}", "with a unit, such as 512m or 2g, not '512'"),
    ("pipeline: {metrics_host: 'localhost:9100'}", "must be a host name or an address, without a scheme or port"),
    ("worker: {port: 6066}", "did you mean web_port?"),
    ("worker: {web_host: 'http://0.0.0.0'}", "without a scheme or port, not 'http://0.0.0.0'"),
    ("worker: {http: {login: basic}}", "must be none, token or proxy, not 'basic'"),
    ("worker: {http: {cert_file: c.pem}}", "cert_file and key_file belong together"),
    ("worker: {max_groups: 20k}", "must be a whole number, not '20k'"),
    ("policy: {min_behind: -1m}", "must be a duration such as"),
    ("policy: {apply: 'on'}", "policy.apply: must be off or auto, not 'on'"),
    ("policy: {owner: [team-a]}", "policy.owner: must be a text, not ['team-a']"),
    ("policy: {kind: kafka-streams}", "did you mean streams?"),
    ("policy: {severity: {STALLED: page}}", "did you mean stalled?"),
    ("policy: {labels: {team: }}", "policy.labels.team: must be a text, and is empty"),
    ("policy: {storm_generations: 2.5}", "must be a whole number, not 2.5"),
    ("policy: {ignore: ['a*']}", "policy.ignore: must be true or false, not ['a*']"),
    ("policies: {threshold: 2}", "did you mean policy?"),
    ("groups: [{match: 'a', bootstrap: 'x:1'}]", "it belongs in clusters.<name>.bootstrap"),
    ("policy: [{threshold: 2}]", "policy: must hold names and values, not a list; take out the dashes"),
    ("clusters: [{name: main, bootstrap: 'a:1'}]", "begin each entry with a name of its own and a colon"),
    ("clusters: {main: {bootstrap: 'kafka://a:1'}}", "did you mean a:1?"),
    ("clusters: {main: {bootstrap: 'a:90922'}}", "a port is from 1 to 65535"),
    ("clusters: {main: {bootstrap: 'a:1', sasl: {username: k, mechanism: PLAIN}}}", "there is no setting sasl; did you mean security?"),
    ("policy: {threshold: '1,5'}", "must be a number, not '1,5'; did you mean 1.5?"),
    ("policy: {threshold: 150%}", "not '150%'; did you mean 1.5?"),
    ("policy: {threshold: }", "must be a number, and is empty; the default is 1.5"),
    ("policy: threshold", "write {threshold: …}"),
    ("worker: {tick: -10}", "must be above 0 s, not -10; the default is 10s"),
    ("bootstrap_servers: 'a:1'", "did you mean clusters.<name>.bootstrap?"),
    ("kagent: {policy: {threshold: 2}}", "there is no setting kagent; write what it holds without it"),
    ("alert: {ops: {type: webhook, url: 'https://x.example'}}", "there is no setting ops; it belongs under destinations"),
    ("redact: hosts", "must be a list, not 'hosts'; write ['host']"),
    ("groups: [{match: 'a', regex: true}]", "there is no setting regex; match is given too (line 3): keep that one"),
    ("ignore: 'console-*'", "ignore: must be a list, not 'console-*'"),
    ("ignore: [null]", "ignore[0]: must be a text, and is empty"),
    ("redact: [ip]", "redact[0]: must be host or client_id, not 'ip'"),
    ("alert: {slack: {url: 'https://x'}}", "there is no setting slack; it belongs under destinations"),
    ("alert: {destinations: {s: {type: slack, url: 'https://x'}}}", "type must be alertmanager, "),
    ("alert: {destinations: {s: {type: webhook, url: 'https://x.example', timeout: 0}}}", "timeout: must be above 0 s, not 0"),
    ("alert: {destinations: {s: {type: webhook, url: 'https://x.example', only: {scopes: [topics]}}}}", "did you mean topic?"),
    ("alert: {destinations: {s: {type: apprise, url: 'hooks.slack.com/T1'}}}", "must begin with the service and ://"),
    ("clusters: {bootstrap: 'a:1'}", "clusters: the entry has no name; write NAME: {bootstrap: …}, with a name of your own"),
    ("clusters: {bootstrap: 'a:1', main: {bootstrap: 'b:1'}}", "a name is missing above it, such as main: {bootstrap: …}"),
    ("alert: {type: webhook, url: 'https://x'}", "alert: the entry has no name; write destinations: {NAME: {type: …, url: …}}"),
    ("alert: {destinations: {type: webhook, url: 'https://x'}}", "alert.destinations: the entry has no name; write NAME: {type: …, url: …}"),
    ("policy: {severity: {page: [stalled, hot partition]}}", "policy.severity.page: the name belongs behind the colon; write stalled: page, hot_partition: page"),
    ("policy: {severity: {ticket: stalled}}", "write stalled: ticket"),
    ("policy: {apply: manual}", "did you mean off?"),
    ("policy: {tolerance: 1/20}", "did you mean 0.05?"),
    ("policy: {cooldown: '00:30:00'}", "did you mean 30m?"),
    ("policy: {reset_policy: newest}", "did you mean latest?"),
    ("worker: {web_host: '*'}", "did you mean 0.0.0.0?"),
    ("ignore: {match: 'x-*'}", "ignore: must be a list, not {'match': 'x-*'}; write ['x-*']"),
    ("redact: true", "redact: must be a list, not true; there are: host, client_id"),
    ("clusters: {main: 'a:1'}", "must hold names and values, not 'a:1'; write bootstrap: 'a:1'"),
    ("groups: {match: 'a*', threshold: 2}", "must be a list, not {'match': 'a*', 'threshold': 2}; begin each entry with a dash"),
    ("redact: host", "redact: must be a list, not 'host'; write ['host']"),
    ("topics: {partitions: true}", "topics.partitions: must be a number, not true"),
    ("policy: {threshold: true}", "policy.threshold: must be a number, not true"),
    ("worker: {tick: no}", "worker.tick: must be a number, not false"),
    ("policy: {min_behind: 1m30s}", "not '1m30s'; did you mean 90s?"),
    ("policy: {cooldown: 1 hour 30 minutes}", "did you mean 90m?"),
    ("worker: {keep_resolved_hours: 2 weeks}", "did you mean 14d?"),
    ("pipeline: {max_offsets_per_trigger: 1e20}", "must be a smaller whole number, not 1e+20; the default is 2000000"),
    ("redact_salt: a\nredact_salt_file: b", "needs either redact_salt or redact_salt_file, not both"),
    ("{clusters: {main: {bootstrap: 'a:1'}}, alert: {destinations: {x: {type: webhook, url: 'https://x', only: {clusters: [mian]}}}}}", "only.clusters[0]: no cluster is named 'mian'; did you mean main?"),
    ("policy: {groups: [{match: a}]}", "there is no setting groups; it belongs at the top, in no section"),
    ("clusters: {main: {bootstrap: 'a:1', protocol: SSL}}", "it belongs in clusters.<name>.security.protocol"),
    ("clusters: {main: {bootstrap: 'a:1', security: {sasl: {mechanism: PLAIN}}}}", "there is no setting sasl; write what it holds without it"),
    ("worker: {web_port: 70000}", "worker.web_port: must be at most 65535, not 70000"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, mechanism: OAUTHBEARER, username: u, password: p}}}", "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    ("groups: [{match: a, owner: x, owner: y}]", "groups[0].owner: is given twice"),
    ("policy: {severity: {uneven work: page}}", "did you mean rebalance?"),
    ("policy: {severity: {stalled: critical}}", "must be page, ticket or info, not 'critical'; did you mean page?"),
    ("policy: {severity: {stalled: warning}}", "did you mean ticket?"),
    ("policy: {kind: kip-848}", "did you mean consumer?"),
    ("policy: {reset_policy: beginning}", "did you mean earliest?"),
    ("policy: {max_moves: unlimited}", "must be a whole number, not 'unlimited'; it may be left out"),
    ("policy: {co_partitioned: [orders, payments]}", "must be true or false, not ['orders', 'payments']; it may be left out"),
    ("policy: {apply: yes}", "must be off or auto, not true; did you mean auto?"),
    ("policy: {team: orders}", "there is no setting team; did you mean owner?"),
    ("policy: 'threshold:2'", "write a space behind the colon: threshold: 2"),
    ("policy: {tolerance: 5%}", "did you mean 0.05?"),
    ("policy: {runbook_url: [wiki]}", "policy.runbook_url: must be a text, not ['wiki']; write 'wiki'"),
    ("groups: {'orders-*': {min_behind: 1m}}", "begin each entry with a dash, as in - match: 'orders-*'"),
    ("groups: [{match: {glob: 'orders-*'}}]", "groups[0].match: must be a text, not {'glob': 'orders-*'}; write 'orders-*'"),
    ("ignore: [{match: 'test-*'}]", "ignore[0]: must be a text, not {'match': 'test-*'}; write 'test-*'"),
    ("exclude: ['test-*']", "there is no setting exclude; did you mean ignore?"),
    ("redact: [address]", "must be host or client_id, not 'address'; did you mean host?"),
    ("clusters: {main: {bootstrap: 'localhost:'}}", "did you mean localhost:9092?"),
    ("clusters: {main: {bootstrap: 'a:1', tls: true}}", "there is no setting tls; did you mean security?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: TLS}}}", "not 'TLS'; did you mean SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SSL, ssl.ca.location: /x}}}", "did you mean ca_file?"),
    ("worker: {http: true}", "worker.http: must hold names and values, not true; there are: ca_file, cert_file"),
    ("worker: {advertised_host: 'https://kagent:6066'}", "without a scheme or port, not 'https://kagent:6066'; did you mean kagent?"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', only: page}}}", "must hold names and values, not 'page'; write {severity: page}"),
    ("alert: {destinations: {x: {type: alertmanager, url: ['https://x.example']}}}", "must be a text, not ['https://x.example']; write 'https://x.example'"),
    ("policy: {threshold: 2, Threshold: 3}", "there is no setting Threshold; threshold is given too (line 3): keep that one"),
    ("clusters: {main: {bootstrap: '*'}}", "the address of one broker is enough, such as broker:9092"),
    ("clusters: {main: {bootstrap: 'localhost/9092'}}", "did you mean localhost:9092?"),
    ("clusters: {main: {bootstrap: 'broker:9092/kafka'}}", "did you mean broker:9092?"),
    ("clusters: {main: {bootstrap: 'b-1.example.com:9092 (TLS)'}}", "did you mean b-1.example.com:9092?"),
    ("clusters: {main: {bootstrap: 'user:pw@broker:9092'}}", "'…@broker:9092' is no host:port; did you mean broker:9092?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {sasl_jaas_config: 'x'}}}", "the login stands in username and password"),
    ("clusters: {main: {bootstrap: 'a:1', security: {verify: false}}}", "certificates and host names are always checked"),
    ("pipeline: {trigger: every 5s}", "did you mean 5s?"),
    ("pipeline: {trigger: PT1M30S}", "did you mean 90s?"),
    ("policy: {min_behind: '≥ 60s'}", "did you mean 1m?"),
    ("policy: {threshold: '>= 1.5:1'}", "did you mean 1.5?"),
    ("policy: {severity: [stalled]}", "write stalled: …"),
    ("policy: {severity: {stalled: P1}}", "did you mean page?"),
    ("policy: {severity: {stalled: none}}", "did you mean info?"),
    ("policy: {min_lag: 1000}", "did you mean min_behind?"),
    ("policy: {page_after: 5m}", "did you mean page_behind?"),
    ("worker: {http: {login: bearer}}", "did you mean token?"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', headers: {a: b}}}}", "a POST without headers of your own"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', only: {severity: [page, ticket]}}}}", "write one of them"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, mechanism: AWS_MSK_IAM, username: u, password: p}}}", "kagent does not log in by that"),
    ("include: other.yaml", "a settings file includes no other"),
    ("pipeline: {trigger: half a minute}", "not 'half a minute'; did you mean 30s?"),
    ("worker: {state_interval: 8-16}", "not '8-16'; did you mean 8s or 16s?"),
    ("topics: {retention_hours: 24-48}", "not '24-48'; did you mean 1d or 2d?"),
    ("worker: {sample: '*/5 * * * *'}", "did you mean 5m?"),
    ("policy: {min_behind: 5 minutes or so}", "did you mean 5m?"),
    ("policy: {storm_generations: five}", "did you mean 5?"),
    ("worker: {max_groups: 20_000 groups}", "did you mean 20000?"),
    ("redact: ['*']", "must be host or client_id, not '*'; write [host, client_id]"),
    ("redact: all", "must be a list, not 'all'; write ['host', 'client_id']"),
    ("policy: {severity: {uneven: page}}", "did you mean rebalance?"),
    ("clusters: {main: {bootstrap: [a:1; b:2]}}", "write a:1,b:2"),
    ("mutes: ['orders-*']", "`kagent mute` silences a group for a while"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{{ group | tojsn }}'}}}", "x.template: there is no filter tojsn, did you mean tojson?"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{{ groop }}'}}}", "there is no field groop, did you mean group?"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{% if stale %}{{ groop | tojsn }}{% endif %}'}}}", "there is no filter tojsn, did you mean tojson?; there is no field groop, did you mean group?"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x.example', template: '{{ zzz }}'}}}", "there is no field zzz; there are: event, id, cluster"),
    ("alert: {destinations: {x: {type: apprise, url: 'https://hooks.slack.com/services/x'}}}", "write the service, such as slack://…, or type: webhook"),
    ("{clusters: {main: {bootstrap: 'a:1'}}, worker: {tick: 10s}, policy: {valid: 1s}}", "policy.valid: must be above worker.tick (10s), the time until the next judgement; the default is 15m"),
    ("groups: [{match: a, valid: 5s}]", "groups[0].valid: must be above worker.tick (10s)"),
    ("clusters: {east coast: {bootstrap: 'a:1'}}", "'east coast' is no name for a cluster: letters, digits, dot, dash and underscore only; did you mean east-coast?"),
    ("pipeline: {master: 'local[0]'}", "did you mean local[*]?"),
    ("worker: {store: 'memory:/'}", "did you mean memory://?"),
    ("groups: [{match: '/(orders/'}]", "unterminated subpattern at position 0; write such as /orders-[0-9]+/"),
    ("clusters: {main: {bootstrap: 'a:1', sasl.mechanism: PLAIN}}", "there is no setting sasl.mechanism; it belongs in security.mechanism"),
    ("clusters: {main: {bootstrap: 'a:1', security: {jaas: x}}}", "the login stands in username and password"),
    ("groups: [{owner: a}]", "groups[0].match: is missing; write such as match: 'orders-*'"),
    ("groups:", "must be a list, and is empty: leave it out; write such as [{match: 'orders-*'}]"),
    ("policy: {1: x}", "policy.1: there is no setting 1; there are: absent_after"),
    ("policy: {hold: 2026-01-01}", "or 1d, not 2026-01-01; the default is 5m"),
    ("policy: {idle_after: 1y}", "not '1y'; the default is 7d"),
    ("policy: {kind: franz-go}", "did you mean classic?"),
    ("policy: {kind: sarama}", "did you mean classic?"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://x', only: {scopes: [partition]}}}}", "must be group, topic, broker or cluster, not 'partition'"),
    ("clusters: {main: {bootstrap: 'b: 9092'}}", "did you mean b:9092?"),
    ("clusters: {main: {bootstrap: 'b :9092, c : 9093'}}", "did you mean b:9092?"),
    ("clusters: {main: {bootstrap: 'b:'}}", "did you mean b:9092?"),
    ("clusters: {main: bootstrap:b:9092}", "write a space behind the colon: bootstrap: b:9092"),
    ("worker: {web_port: six}", "must be a whole number, not 'six'; the default is 6066"),
    ("worker: {tick: 10000}", "must be at most 3600 s, not 10000; did you mean 10s?"),
    ("spring: {kafka: {bootstrap-servers: 'a:1'}}", "there is no setting spring; write bootstrap-servers as clusters.<name>.bootstrap"),
    ("quarkus: {kafka: {sasl: [1], sasl.username: u}}", "there is no setting quarkus; there are: alert"),
    ("worker: {http: {login: 'off'}}", "did you mean none?"),
    *((f"clusters: {{main: {{bootstrap: 'a:1', security: {{{name}: x}}}}}}", said) for name, said in JAVA.items()),
    ("clusters: {main: {bootstrap: 'a:1', security: {password: {file: /run/secrets/x}}}}", "write password_file: /run/secrets/x"),
    ("alert: {destinations: {x: {type: pagerduty, routing_key: {secretKeyRef: {name: s3cret}}}}}", "must be a text; write routing_key_file: /path/to/file"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, username: u, password: '${PW}'}}}", "password: variables are not replaced in the file; set KAGENT_CLUSTERS__MAIN__SECURITY__PASSWORD or password_file."),
    ("redact_salt: '{{ .Values.salt }}'", "redact_salt: variables are not replaced in the file; set KAGENT_REDACT_SALT or redact_salt_file."),
    ("worker: {web_port: '%(port)s'}", "variables are not replaced in the file; set KAGENT_WORKER__WEB_PORT."),
    ("groups: [{match: a, owner: '${TEAM}'}]", "groups[0].owner: variables are not replaced in the file; write the value itself."),
    ("alert: {destinations: {x-y: {type: alertmanager, url: '${AM}'}}}", "x-y.url: variables are not replaced in the file; set KAGENT_ALERT__DESTINATIONS__X_Y__URL."),
    ("alert: {destinations: {x: {type: webhook, url_file: 'https://x.example/s3cret'}}}", "url_file: must be a path, not an address; write it as url."),
    ("worker: {http: {ca_file: '-----BEGIN CERTIFICATE-----'}}", "must be a path, not a key or certificate; put it into a file"),
    ("clusters: {main: {bootstrap: '$BROKER:9092'}}", "variables are not replaced in the file; set KAGENT_CLUSTERS__MAIN__BOOTSTRAP."),
    ("data: $HOME/kagent", "data: variables are not replaced in the file; set KAGENT_DATA."),
    ("policy: {owner: <team>}", "variables are not replaced in the file; set KAGENT_POLICY__OWNER."),
    ("clusters: {main: {bootstrap: 'b:0'}}", "a port is from 1 to 65535"),
    ("clusters: {main: {bootstrap: '\"b:1\"'}}", "did you mean b:1?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL, username: u, password: p}}}", "did you mean SASL_PLAINTEXT or SASL_SSL?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, mechanism: SCRAM, username: u, password: p}}}", "did you mean SCRAM-SHA-256 or SCRAM-SHA-512?"),
    ("clusters: {main: {bootstrap: 'a:1', security: {password_env: PW}}}", "a variable has the name of the setting"),
    ("groups: [{match: [a, b], owner: c}]", "each has an entry of its own: [{match: 'a', …}, {match: 'b', …}]"),
    ("policy: {runbook_url: '[wiki](https://wiki.example/x)'}", "did you mean https://wiki.example/x?"),
    ("worker: {http: {public_url: 'ops:6066'}}", "did you mean https://ops:6066?"),
    ("pipeline: {master: spark://host}", "did you mean spark://host:7077?"),
    ("pipeline: {history: false}", "YAML reads true or false: put it in quotes, or leave it out"),
    ("pipeline: {trigger: {interval: 5s}}", "write '5s'"),
    ("alert: {destinations: {x: {type: alertmanager, url: 'https://x', only: {verdicts: lag}}}}", "must be a list, not 'lag'; there are: balanced, rebalance"),
    ("alert: {destinations: {x: {type: pagerduty, api_key: x}}}", "did you mean routing_key?"),
    ("alert: {slack: {channel: x}}", "alert.slack: there is no setting slack; it belongs under destinations"),
    ("cluster: {name: main, bootstrap: 'a:1'}", "there is no setting cluster; did you mean clusters?"),
    ("clusters: {name: main, bootstrap: 'a:1'}", "the name stands above what it names; write main: {bootstrap: …}"),
    ("kafka: {properties: {security.protocol: SSL}}", "write security.protocol as clusters.<name>.security.protocol"),
    ("worker: {http: {public_url: 'https://x/#/a'}}", "not 'https://x/#/a'; it may be left out"),
    ("rules: [{match: a}]", "did you mean groups?"),
    ("notifications: {destinations: {}}", "did you mean alert?"),
    ("groups: [{match: a, max_lag_seconds: 60}]", "did you mean min_behind?"),
    ("clusters: {main: {host: b}}", "there is no setting host; did you mean bootstrap?"),
    ("clusters: {main: {bootstrap: [b, 9092]}}", "write b:9092"),
    ("clusters: {main: {bootstrap: {host: b, port: 9092}}}", "write b:9092"),
    ("groups: [{match: a, enabled: false}]", "`ignore: true` leaves groups out"),
    ("policy: {labels: 'team: orders'}", "write {team: orders}"),
    ("worker: {web: {port: 80}}", "there is no setting web; write web_port: …"),
    ("pipeline: {driver_memory: 1.5}", "must be a number with a unit, such as 512m or 2g, not '1.5'"),
    ("pipeline: {options: {spark: {sql: {shuffle: 2}}}}", "write spark.sql.shuffle: 2"),
    ("alert: {destinations: {x: {type: webhook, url: 'https://x', content_type: json}}}", "must be a media type, such as application/json, not 'json'"),
    ("version: 2", "there is no setting version; the file has no version"),
]  # fmt: skip


def notes_of(loaded: Loaded) -> list[str]:
    """The notes about the file, from their lines on."""
    return [note.split("kagent.yaml:")[1] for note in loaded.notes]


def settings(*arguments: str, file: Path | None = None) -> Result:
    config = ["--config", str(file)] if file else []
    return CliRunner().invoke(root, [*config, "settings", *arguments])


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str) -> Path:
        file = tmp_path / "kagent.yaml"
        file.write_text(text)
        return file

    return write


@pytest.mark.slow
@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[text[:60] for text, _ in MISTAKES])
def test_a_mistake_is_named_with_its_line_and_what_was_meant(text: str, said: str, written: Any) -> None:
    file = written(f"# a comment\n\n{text}\n")

    with pytest.raises(SettingsError) as error:
        load(file)

    line = 4 if "\n" in text else 3
    assert str(error.value).startswith(f"The settings are wrong: {file}:{line}: ")
    assert said in str(error.value)
    assert not str(error.value).endswith("?.")


def test_forty_mistakes_in_one_file_are_forty_lines(written: Any) -> None:
    entries = "".join(f"  - {{match: 'a{n}', treshold: {n}}}\n" for n in range(40))

    with pytest.raises(SettingsError) as error:
        load(written(f"groups:\n{entries}"))

    first, *lines = str(error.value).splitlines()
    assert first == "The settings have 40 mistakes:"
    assert [f"kagent.yaml:{n}: groups[{n - 2}].treshold:" in lines[n - 2] for n in range(2, 42)] == [
        True
    ] * 40
    assert all("did you mean threshold?" in line for line in lines)


def test_what_a_section_of_a_wrong_name_holds_is_checked_too(written: Any) -> None:
    file = written(
        "cluster:\n  main:\n    bootstrap: a:1\n    securty:\n      user: x\ntopic: {partitions: -8}\n"
        "worker:\n  https: {logins: none}\n"
    )

    with pytest.raises(SettingsError) as error:
        load(file)

    assert [line.split("kagent.yaml:")[1] for line in str(error.value).splitlines()[1:]] == [
        "1: there is no setting cluster; did you mean clusters?",
        "4: clusters.main.securty: there is no setting securty; did you mean security?",
        "5: clusters.main.security.user: there is no setting user; did you mean username?",
        "6: there is no setting topic; did you mean topics?",
        "6: topics.partitions: must be at least 1, not -8; the default is 8",
        "8: worker.https: there is no setting https; did you mean http?",
        "8: worker.http.logins: there is no setting logins; did you mean login?",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "alert:\n  destination:\n    x: {type: pagerduty, routing_key: k, timeout: ten}\n  destinations:\n    y: {type: nope}\n",
            [
                "2: alert.destination: there is no setting destination; did you mean destinations? It is given too (line 4): put all under that name",
                "3: alert.destinations.x.timeout: must be a duration such as 250ms, 90s, 5m, 2h or 1d, not 'ten'; did you mean 10s?",
                "5: alert.destinations.y: type must be alertmanager, pagerduty, webhook or apprise, not 'nope'",
            ],
        ),
        (
            "groups:\n  - {match: a, tresh: 2}\ngroup:\n  - {match: b, min_behnd: 3}\n",
            [
                "2: groups[0].tresh: there is no setting tresh; did you mean threshold?",
                "3: there is no setting group; did you mean groups? It is given too (line 1): put all under that name",
                "4: groups[1].min_behnd: there is no setting min_behnd; did you mean min_behind?",
            ],
        ),
        (
            "policies:\n  threshold: 3\n  hold: soon\npolicy:\n  threshold: two\n",
            [
                "1: there is no setting policies; did you mean policy? It is given too (line 4): put all under that name",
                "3: policy.hold: must be a duration such as 250ms, 90s, 5m, 2h or 1d, not 'soon'; the default is 5m",
                "5: policy.threshold: must be a number, not 'two'; did you mean 2?",
            ],
        ),
    ],
)
def test_a_section_under_both_its_name_and_a_wrong_one_is_named_and_both_are_checked(
    text: str, said: list[str], written: Any
) -> None:
    with pytest.raises(SettingsError) as error:
        load(written(text))

    assert [line.split("kagent.yaml:")[1] for line in str(error.value).splitlines()[1:]] == said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("alert:\n  destinations:\n    x:\n      type: PagerDuty\n      routing_key: k\n", 4),
        ("alert:\n  destinations:\n    x:\n      type: webhook\n      url: example.com/hook\n", 5),
        ("worker:\n  http:\n    public_url: https://x.example\n    login: token\n", 4),
        ("groups:\n  - match: a\n    owner: me\n    lower_threshold: 2\n", 4),
        ("alert:\n  destinations:\n    x:\n      type: pagerduty\n", 3),
    ],
)
def test_what_is_wrong_about_a_section_has_the_line_of_the_setting_that_it_names(
    text: str, line: int, written: Any
) -> None:
    with pytest.raises(SettingsError, match=rf"kagent\.yaml:{line}: "):
        load(written(text))


def test_a_name_behind_a_no_break_space_is_explained_by_that_alone(written: Any) -> None:
    with pytest.raises(SettingsError, match="what indents it is no space to YAML, so write spaces") as error:
        load(written("home: main\n\u00a0home: main\n"))
    assert "is given too" not in str(error.value)


def test_a_manifest_of_kubernetes_is_named_as_one(written: Any) -> None:
    with pytest.raises(SettingsError, match=r"kagent\.yaml is a manifest of Kubernetes"):
        load(written("{apiVersion: v1, kind: ConfigMap, data: {kagent.yaml: x}}"))


def test_a_tilde_is_the_home_folder_in_every_path(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    found = load(
        written(
            "{pipeline: {checkpoint: ~/c, history: 's3a://b/~x'}, worker: {data: ~/w}, redact_salt_file: ~/s,"
            " clusters: {m: {bootstrap: 'b:1', security: {protocol: SSL, ca_file: ~/ca.pem}}},"
            " alert: {destinations: {x: {type: pagerduty, routing_key_file: ~/k}}}}"
        )
    )

    assert (found.pipeline.checkpoint, found.pipeline.history) == ("/home/u/c", "s3a://b/~x")
    assert (found.worker.data, str(found.redact_salt_file)) == ("/home/u/w", "/home/u/s")
    assert str(found.clusters["m"].security.ca_file) == "/home/u/ca.pem"
    assert "/home/u/k" in str(found.alert.destinations["x"])


def test_a_name_in_capitals_hides_nothing_of_the_right_one(written: Any) -> None:
    file = written("Clusters: {}\nclusters: {main: {bootstrap: 'a:1', securty: {}}}\n")

    with pytest.raises(SettingsError, match=r"did you mean security\?"):
        load(file)


def test_mistakes_are_named_that_only_show_once_others_are_mended(written: Any) -> None:
    text = (
        "clusters:\n"
        "  main: {bootstrap: 'a:1', security: {protocol: SASL_SSL, username: [u], password: p}}\n"
        "  east: {bootstrap: 'a:1:2', security: {protocol: SSL, key_file: k}}\n"
        "home: mian\n"
        "worker: {http: {login: basic, cert_file: c}}\n"
        "policy: {threshold: '2,0', lower_threshold: 1.8}\n"
        "groups:\n"
        "  - {match: 'b*', lower_threshold: 3, threshold: 2}\n"
        "alert: {destinations: {am: {type: alertmanager, url: 'alertmanager:9093', resend: often}}}\n"
    )

    with pytest.raises(SettingsError) as error:
        load(written(text))

    said = [line.split("kagent.yaml:", 1)[1] for line in str(error.value).splitlines()[1:]]
    assert [(line.split(": ")[0], line.split(": ", 2)[1]) for line in said] == [
        ("2", "clusters.main.security.username"),
        ("3", "clusters.east.bootstrap"),
        ("3", "clusters.east.security"),
        ("4", "home"),
        ("5", "worker.http.login"),
        ("5", "worker.http"),
        ("6", "policy.threshold"),
        ("8", "groups[0]"),
        ("9", "alert.destinations.am.resend"),
        ("9", "alert.destinations.am"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clusters:\n\tmain:\n", "kagent.yaml:2:1 is not YAML (a tab begins the line; indent with spaces). Others may follow"),
        ("clusters:\n  main: {bootstrap: a\nhome: b\n", "kagent.yaml:3:5 is not YAML (while parsing a flow mapping, which begins at line 2,"),
        ("policy:\n  threshold: 2\n cooldown: 3\n", "kagent.yaml:3:2 is not YAML"),
        ("policy: *nope\n", "kagent.yaml:1:9 is not YAML (found undefined alias 'nope': a text that begins with * must stand in quotes, as in '*-orders'). Others may follow"),
        ("home: a\n---\nhome: b\n", "kagent.yaml:2:1 is not YAML (expected a single document"),
        ("home: a\npolicy: \x01\n", "kagent.yaml:2 is not YAML (it holds the control character \\x01)."),
    ],
)  # fmt: skip
def test_what_is_not_yaml_is_named_with_its_line(text: str, said: str, written: Any) -> None:
    with pytest.raises(SettingsError) as error:
        load(written(text))

    assert said in str(error.value)


def test_a_cluster_may_be_called_what_yaml_takes_for_a_number_or_a_truth(written: Any) -> None:
    found = load(written("clusters: {9: {bootstrap: 'a:1'}, on: {bootstrap: 'b:1'}}\n"))

    assert list(found.clusters) == ["9", "on"]


def test_a_group_s_threshold_is_compared_with_that_of_the_policy(written: Any) -> None:
    found = load(written("policy: {threshold: 2}\ngroups: [{match: a, lower_threshold: 1.9}]\n"))

    assert found.policies()("a").lower_threshold == 1.9


def test_a_pattern_that_an_earlier_one_hides_is_noted(written: Any) -> None:
    loaded = loaded_from(written("groups:\n  - {match: a}\n  - {match: b}\n  - {match: a, owner: me}\n"))

    assert notes_of(loaded) == ["4: groups[2] has no effect: the pattern is that of line 2, which holds."]


def test_a_glob_that_was_meant_as_a_regular_expression_is_noted(written: Any) -> None:
    loaded = loaded_from(
        written("groups:\n  - {match: '/orders-.*'}\n  - {match: 'a[bc]'}\nignore: ['x[1']\n")
    )

    assert notes_of(loaded) == [
        "2: '/orders-.*' is a glob; a regular expression ends with a slash too: '/orders-.*/'.",
        "4: 'x[1' has a [ without a ], which then stands for itself.",
    ]


def test_a_sign_that_means_nothing_in_a_glob_is_noted(written: Any) -> None:
    loaded = loaded_from(
        written("groups:\n  - {match: '!orders-*'}\n  - {match: 'a-{eu, us}-*'}\nignore: ['test-%', '%*']\n")
    )

    assert notes_of(loaded) == [
        "2: '!orders-*' is a glob, in which ! stands for itself; the first entry of groups that matches holds, so put 'orders-*' before '*'.",
        "3: 'a-{eu, us}-*' is a glob, in which braces stand for themselves; write (…) in a regular expression, such as '/.*(eu|us).*/'.",
        "4: 'test-%' is a glob, in which % stands for itself; write 'test-*'.",
    ]


def test_what_stands_there_under_a_name_with_dots_is_not_missing(written: Any) -> None:
    with pytest.raises(SettingsError) as error:
        load(written("clusters: {main: {bootstrap.servers: 'a:1', request.timeout.ms: 5}}"))

    assert "bootstrap.servers; did you mean bootstrap?" in str(error.value)
    assert "is missing" not in str(error.value)


def test_a_secret_is_not_repeated_where_its_section_is_wrong(written: Any) -> None:
    with pytest.raises(SettingsError, match="would protect nothing") as error:
        load(written("worker: {http: {token: s3cret}}"))

    assert "s3cret" not in str(error.value)


def test_a_secret_of_a_wrong_type_is_not_repeated(written: Any) -> None:
    for value in ("31337", "[s3cret]", "{a: s3cret}"):
        with pytest.raises(SettingsError) as error:
            load(written(f"redact_salt: {value}\nworker: {{http: {{login: token, token: {value}}}}}\n"))
        assert "31337" not in str(error.value)
        assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "KAGENT_BOTSTRAP",
            "a:1",
            "KAGENT_BOTSTRAP: there is no such variable; did you mean KAGENT_BOOTSTRAP?",
        ),
        ("KAGENT_POLICY__THRESHHOLD", "2", "did you mean threshold?"),
        (
            "KAGENT_PIPELINE__TRIGGER",
            "soon",
            "KAGENT_PIPELINE__TRIGGER: pipeline.trigger: must be a duration",
        ),
        ("KAGENT_WORKER_TICK", "2", "did you mean KAGENT_WORKER__TICK?"),
        ("KAGENT_POLICY_TRESHOLD", "2", "did you mean KAGENT_POLICY__THRESHOLD?"),
        ("KAGENT_WORKR__TICK", "2", "did you mean KAGENT_WORKER__TICK?"),
        ("KAGENT_THRESHOLD", "2", "did you mean KAGENT_POLICY__THRESHOLD?"),
        (
            "KAGENT_WORKER__WEB_PORT",
            "70000",
            "KAGENT_WORKER__WEB_PORT: worker.web_port: must be at most 65535",
        ),
        ("KAGENT_GROUPS", "a*, b*", """must hold JSON; write '[{"match": "a*"}, {"match": "b*"}]'"""),
        ("KAGENT_WEB_PORT", "8080", "did you mean KAGENT_WORKER__WEB_PORT?"),
        ("KAGENT_SECURITY_PROTOCOL", "SSL", "did you mean KAGENT_CLUSTERS__<NAME>__SECURITY__PROTOCOL?"),
        ("KAGENT_CLUSTERS_MAIN_BOOTSTRAP", "a:1", "did you mean KAGENT_CLUSTERS__MAIN__BOOTSTRAP?"),
        ("KAGENT_CLUSTERS__MAIN_BOOTSTRAP", "a:1", "did you mean KAGENT_CLUSTERS__MAIN__BOOTSTRAP?"),
        ("KAGENT_KAFKA_BOOTSTRAP_SERVERS", "a:1", "did you mean KAGENT_BOOTSTRAP?"),
        (
            "KAGENT_COLOUR",
            "red",
            "there is no such variable; `kagent settings --schema` prints all settings",
        ),
        ("KAGENT_LOG_LEVEL", "debug", "there is no such variable; `--verbose` behind a command prints more"),
        ("KAGENT_POLICY__SEVERITY", "page=stalled", """must hold JSON; write '{"stalled": "page"}'"""),
        ("KAGENT_POLICY__LABELS", "team=a, env=b", """must hold JSON; write '{"team": "a", "env": "b"}'"""),
        ("KAGENT_POLICY__LABELS", "{team: a}", """must hold JSON; write '{"team": "a"}'"""),
        ("KAGENT_CLUSTERS", "b:9092", "write KAGENT_CLUSTERS__MAIN__BOOTSTRAP=b:9092"),
        ("KAGENT_CLUSTERS__MAIN__SECURITY", "SSL", "write KAGENT_CLUSTERS__MAIN__SECURITY__PROTOCOL=SSL"),
        ("KAGENT_REDACT", "host client_id", """must hold JSON; write '["host", "client_id"]'"""),
        ("KAGENT_CLUSTER__MAIN__BOOTSTRAP", "a:1", "did you mean KAGENT_CLUSTERS__MAIN__BOOTSTRAP?"),
        ("KAGENT_CHEKPOINT", "/x", "did you mean KAGENT_PIPELINE__CHECKPOINT?"),
        ("KAGENT_WORKER__TICK", "10000", "must be at most 3600 s, not 10000; did you mean 10s?"),
        ("KAGENT_WORKER__DATA", "${HOME}/kagent", "variables are not replaced; write the value itself"),
        ("KAGENT_BROKERS", "a:1", "there is no such variable; did you mean KAGENT_BOOTSTRAP?"),
        ("KAGENT_IGNORE", "test-*, old-*", """KAGENT_IGNORE: must hold JSON; write '["test-*", "old-*"]'"""),
    ],
)
def test_a_mistake_in_a_variable_is_named_by_the_variable(
    variable: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError) as error:
        load()

    assert said in str(error.value)


def test_wrong_variables_hide_no_other_mistake(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "KAGENT_IGNORE": "[test-*",
        "KAGENT_ALERT__DESTINATIONS": "{pager",
        "KAGENT_POLICY__HOLD": "soon",
    }.items():
        monkeypatch.setenv(name, value)
    text = (
        "clusters: {main: {bootstrap: 'a:1'}}\n"
        "home: mian\n"
        "worker: {tick: 5x}\n"
        "alert: {destinations: {p: {type: pagerduty}}}\n"
    )

    with pytest.raises(SettingsError) as error:
        load(written(text))

    said = [line.split("kagent.yaml:")[-1].strip() for line in str(error.value).splitlines()[1:]]
    assert [line.split(": ")[:2] for line in said] == [
        ["2", "home"],
        ["3", "worker.tick"],
        ["4", "alert.destinations.p"],
        ["KAGENT_ALERT__DESTINATIONS", 'must hold JSON, such as \'["a"]\' or \'{"a"'],
        ["KAGENT_IGNORE", 'must hold JSON, such as \'["a"]\' or \'{"a"'],
        ["KAGENT_POLICY__HOLD", "policy.hold"],
    ]


def test_one_wrong_entry_of_a_list_hides_nothing_beside_it(written: Any) -> None:
    hook = "{type: webhook, url: 'https://x.example', url_file: f, only: {scopes: [groups]}}"

    with pytest.raises(SettingsError) as error:
        load(written(f"alert: {{destinations: {{h: {hook}}}}}"))

    assert "did you mean group?" in str(error.value)
    assert "alert.destinations.h: needs either url or url_file, not both" in str(error.value)


def test_a_wrong_name_is_taken_for_the_one_that_is_missing(written: Any) -> None:
    with pytest.raises(SettingsError) as error:
        load(written("groups: [{pattern: 'pay-*'}]"))

    assert "groups[0].pattern: there is no setting pattern; did you mean match?" in str(error.value)


def test_what_kubernetes_sets_for_a_service_named_kagent_is_no_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {
        "KAGENT_SERVICE_HOST": "10.0.0.1",
        "KAGENT_PORT": "tcp://10.0.0.1:6066",
        "KAGENT_WEB_PORT": "tcp://10.0.0.1:6066",
        "KAGENT_PORT_6066_TCP_ADDR": "10.0.0.1",
        "KAGENT_PORT_6066_TCP_PORT": "6066",
        "KAGENT_WORKER_SERVICE_PORT_HTTP": "6066",
    }.items():
        monkeypatch.setenv(name, value)

    assert load().clusters == {}


def test_durations_have_units_in_the_file_and_in_variables(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_POLICY__COOLDOWN", "2h")
    found = load(written("policy: {min_behind: 5m, settle: 30}\nworker: {keep_resolved_hours: 7d}\n"))

    policy = found.policy.model_dump()
    assert (policy["min_behind"], policy["settle"], policy["cooldown"]) == (300, 30, 7200)
    assert found.worker.keep_resolved_hours == 168


def test_a_setting_of_an_older_kagent_is_read_with_a_note(
    written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(policy.RETIRED, "patience", "kagent no longer waits; remove it")
    loaded = loaded_from(written("policy:\n  patience: 3\ngroups:\n  - {match: a, patience: 4}\n"))

    assert [note.split(": ", 1)[1] for note in loaded.notes] == [
        "the setting patience has no effect: kagent no longer waits; remove it."
    ] * 2
    assert [note.split(": ")[0].rsplit(":")[-1] for note in loaded.notes] == ["2", "4"]


def test_what_is_in_effect_is_printed_with_its_source(written: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAGENT_WORKER__TICK", "5s")
    file = written("policy:\n  threshold: 2\ngroups:\n  - {match: 'a*', owner: me}\n")
    answer = settings(file=file)

    assert f"  threshold: 2.0  # {file}:2\n" in answer.output
    assert "  tick: 5s  # KAGENT_WORKER__TICK\n" in answer.output
    assert "  lower_threshold: 1.25  # default\n" in answer.output
    assert f"  - match: a*  # {file}:4\n" in answer.output
    shown = yaml.safe_load(answer.output)
    assert (shown["policy"]["threshold"], shown["groups"]) == (2.0, [{"match": "a*", "owner": "me"}])


def test_lengths_of_time_are_printed_with_units_and_read_again_as_the_same(written: Any) -> None:
    alert = "alert: {destinations: {am: {type: alertmanager, url: 'https://am', resend: 90}}}\n"
    file = written(f"policy: {{idle_after: 604800}}\ngroups: [{{match: a, hold: 90}}]\n{alert}")
    printed = settings(file=file).output
    shown = yaml.safe_load(printed)

    assert (shown["policy"]["idle_after"], shown["groups"][0]["hold"]) == ("7d", "90s")
    assert shown["topics"]["retention_hours"] == "1d"
    assert shown["alert"]["destinations"]["am"]["resend"] == "90s"
    assert shown["policy"]["threshold"] == 1.5
    assert settings("--json", file=file).output == settings("--json", file=written(printed)).output


def test_check_says_in_one_line_that_all_is_right(written: Any) -> None:
    file = written("policy: {threshold: 2}\n")

    right = f"The settings are right ({file})."
    assert settings("--check", file=file).output.startswith(
        f"{right} No cluster is in them: pass -b host:9092"
    )
    file.write_text("clusters: {main: {bootstrap: 'a:1'}}\n")
    assert settings("--check", file=file).output == f"{right}\n"


def test_a_file_that_this_machine_does_not_have_is_noted_and_no_mistake(written: Any, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    security = f"{{protocol: SSL, ca_file: {tmp_path}/ca.prem}}"
    answer = settings(
        "--check", file=written(f"clusters:\n  main: {{bootstrap: 'a:1', security: {security}}}\n")
    )

    assert answer.exit_code == 0
    assert "kagent.yaml:2: clusters.main.security.ca_file: this machine has no file" in answer.stderr
    assert f"did you mean {tmp_path}/ca.pem?" in answer.stderr


def test_a_contradiction_in_a_groups_entry_hides_no_other_mistake_and_no_note(written: Any) -> None:
    text = "policy: {thresold: 1.4}\ngroups: [{match: a, threshold: 1.2, lower_threshold: 1.4}]\nclusters: {main: {bootstrap: b}}\n"
    answer = settings("--check", file=written(text))

    assert "did you mean threshold?" in str(answer.exception)
    assert "kagent.yaml:2: groups[0]: lower_threshold: must not be above threshold" in str(answer.exception)
    assert "names no port" in answer.stderr


def test_a_file_of_the_usual_name_that_is_not_named_is_noted_as_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "not read" not in settings("--check").stderr

    (tmp_path / "kagent.yaml").write_text("policy: {treshold: 2}\n")

    assert "kagent.yaml in this folder is not read; name it with --config" in settings("--check").stderr


def test_a_number_in_quotes_is_that_number(written: Any) -> None:
    found = load(written("policy: {threshold: '2'}\ntopics: {partitions: '4'}\n"))

    assert (found.policies()("a").threshold, found.topics.partitions) == (2.0, 4)


@pytest.mark.slow
def test_the_schema_takes_the_guides_and_refuses_typos(tmp_path: Path) -> None:
    schema = json.loads(settings("--schema").output)
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {"policy": {"min_behind": "5m"}, "groups": [{"match": "a", "threshold": 2}]}
    jsonschema.validate(good, schema)
    # As a template writes them, and YAML 1.2 reads them: kagent takes them too.
    texts = {"threshold": "2", "max_moves": "7", "stateful": "yes", "co_partitioned": "false", "hold": "5m"}
    quoted = {
        "policy": texts,
        "topics": {"partitions": "4"},
        "clusters": {"a": {"bootstrap": "a:1, [::1]:2"}},
    }
    jsonschema.validate(quoted, schema)
    assert load(_file(tmp_path, json.dumps(quoted))).topics.partitions == 4

    mistakes: tuple[dict[str, Any], ...] = (
        {"polcy": {}},
        {"policy": {"treshold": 2}},
        {"groups": [{}]},
        {"policy": {"min_behind": "5x"}},
        {"worker": {"tick": 7200}},
        {"topics": {"partitions": "many"}},
        {"topics": {"prefix": "a b"}},
        {"policy": {"stateful": "ja"}},
        {"clusters": {"a": {"bootstrap": "https://a:1"}}},
        {"clusters": {"a": {"bootstrap": "a:1;b:1"}}},
    )
    for bad in mistakes:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, schema)


@pytest.mark.slow
def test_the_schema_needs_nothing_but_itself() -> None:
    refs = [part.split('"')[0] for part in json.dumps(json_schema()).split('"$ref": "')[1:]]

    assert refs
    assert all(ref.removeprefix("#/$defs/") in json_schema()["$defs"] for ref in refs)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_made_from_the_code_is_current(page: str) -> None:
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"


def test_every_setting_is_described() -> None:
    settings = PAGES["settings.md"]().partition("\n## Old settings")[0]
    bare = [line for line in settings.splitlines() if line.startswith("| `") and line.endswith("|  |")]

    assert bare == []


def _file(folder: Path, text: str) -> Path:
    file = folder / "kagent.yaml"
    file.write_text(text)
    return file


@pytest.mark.slow
def test_what_is_wrong_beside_an_unknown_type_of_destination_is_named_too(tmp_path: Path) -> None:
    destination = "type: nope\n      timeout: ten\n      only: {clusters: main}\n"
    with pytest.raises(SettingsError) as error:
        load(_file(tmp_path, f"alert:\n  destinations:\n    ops:\n      {destination}"))
    assert "kagent.yaml:5: alert.destinations.ops.timeout: must be a duration" in str(error.value)
    assert "kagent.yaml:6: alert.destinations.ops.only.clusters: must be a list" in str(error.value)


def test_a_wrong_value_that_a_variable_overrides_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_POLICY__THRESHOLD", "2")
    loaded = loaded_from(_file(tmp_path, "policy:\n  threshold: '1,5'\n"))
    assert loaded.settings.policy.model_dump()["threshold"] == 2
    (note,) = loaded.notes
    assert "kagent.yaml:2: policy.threshold: must be a number, not '1,5'; did you mean 1.5?" in note
    assert note.endswith("KAGENT_POLICY__THRESHOLD overrides it.")


def test_a_secret_in_a_list_of_clusters_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        load(_file(tmp_path, "clusters: [{security: {password: s3cret}}]"))
    assert "s3cret" not in str(error.value)


def test_what_an_entry_without_a_name_holds_is_checked_too(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as error:
        load(_file(tmp_path, "alert:\n  type: webhook\n  url: https://x\n  timeout: ten\n"))
    said = [line.split("kagent.yaml:")[1] for line in str(error.value).splitlines()[1:]]
    assert said[0].startswith("1: alert: the entry has no name; write destinations: {NAME: {")
    assert said[1].startswith("4: alert.destinations.NAME.timeout: must be a duration")
    assert len(said) == 2


@pytest.mark.parametrize("text", ["trigger=1s", "{triger: 1s}"])
def test_one_setting_in_the_variable_of_its_section_has_a_variable_of_its_own(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAGENT_PIPELINE", text)
    with pytest.raises(SettingsError, match=r"KAGENT_PIPELINE: .*did you mean KAGENT_PIPELINE__TRIGGER\?$"):
        load()
