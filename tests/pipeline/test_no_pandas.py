"""The stream's processes do without pandas, and whoever wants it afterwards gets it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

STREAM = """
import json, sys
from kagent.pipeline.build import Target
from kagent.pipeline.spark_session import session
from kagent.pipeline.stream import per_task, to_messages
from kagent.settings import load

def told(batches):
    import pyarrow as pa
    for batch in per_task(Target("main", "events", "dead", "app"))(batches):
        yield pa.RecordBatch.from_pydict({"pandas": ["pandas" in sys.modules], "topic": [batch["topic"][0].as_py()]})

spark = session(load(bootstrap="127.0.0.1:1").pipeline, "local[1]")
text = "binary('key') key, binary('value') value, 1 partition, 2L offset, current_timestamp() timestamp"
rows = spark.sql("select " + text)
messages = to_messages(rows, Target("main", "events", "dead", "app"), 1).drop("value").count()
driver = "pandas" in sys.modules
from kagent.pipeline.no_pandas import version_alone
few = rows.selectExpr("key", "value", "partition", "offset", "unix_millis(timestamp) AS time")
with version_alone():
    made = few.mapInArrow(told, "pandas boolean, topic string")
task = [(row.topic, row.pandas) for row in made.collect()]
spark.stop()
print(json.dumps({"messages": messages, "driver": driver, "task": task}))
"""
AFTERWARDS = """
import sys
from kagent.pipeline.no_pandas import arrow_alone, hidden, version_alone
arrow_alone()
with hidden():
    try:
        import pandas
    except ImportError:
        print("hidden")
with version_alone():
    import pandas
    print(pandas.__version__[0].isdigit(), hasattr(pandas, "DataFrame"))
print("pandas" in sys.modules)
import pandas
with hidden(), version_alone():
    import pandas
    print(hasattr(pandas, "DataFrame"))
print(len(pandas.DataFrame({"a": [1, 2]})))
"""


def output_of(program: str) -> list[str]:
    """What a Python of its own prints: this one may have pandas already."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_pandas_can_be_imported_once_the_stream_is_built() -> None:
    assert output_of(AFTERWARDS) == ["hidden", "True False", "False", "True", "2"]


@pytest.mark.spark
def test_neither_driver_nor_task_loads_pandas() -> None:
    found = json.loads(output_of(STREAM)[-1])

    assert found == {"messages": 1, "driver": False, "task": [["dead", False]]}
