"""Spark SQL's words for an Arrow schema, so that the shape of every table and every Arrow function is written once.

``pyspark.sql.pandas.types.from_arrow_schema`` does the same, but needs Spark to be imported, which takes a second.
"""

from __future__ import annotations

import pyarrow as pa

TIMESTAMP = pa.timestamp("us", tz="UTC")
"""Spark's TIMESTAMP: microseconds, without a zone of its own."""
SQL = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
}


def columns(schema: pa.Schema) -> list[tuple[str, str]]:
    """Name and SQL type of each field. Raises KeyError for a type that no table of ours has."""
    return [(field.name, SQL[field.type]) for field in schema]


def ddl(schema: pa.Schema) -> str:
    """The schema as Spark's DDL, as mapInArrow and CREATE TABLE take it."""
    # Quoted, because `group` is a word of SQL.
    return ", ".join(f"`{name}` {kind}" for name, kind in columns(schema))
