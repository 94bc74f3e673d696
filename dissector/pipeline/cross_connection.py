"""Cross-connection findings in Spark: observations are sorted by scope, findings are joined to rows of exchanges.

Invariant: observations of one scope are in one partition, in the order of the capture. So findings are those of reading
the whole capture, however packets were distributed.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from dissector.core.finding import Severity
from dissector.findings.registry import DETECTORS
from dissector.pipeline.observations import BY, ORDER
from dissector.pipeline.table_schemas import BY_NAME, PARTITIONS, ROW_KEY

_MARKS: Final = rf"^(\[({'|'.join(sorted({each.explanation.code for each in DETECTORS}))})\]( |$))+"
"""Matches the codes of cross-connection findings at the beginning of an info column."""
_SEVERITIES: Final = [each.value for each in Severity]


def partitioned(observations: DataFrame, partitions: int) -> DataFrame:
    """Return observations of all partitions in the order that `observations.findings_of` needs."""
    return observations.repartition(partitions, *BY).sortWithinPartitions(*ORDER)


def with_found(exchanges: DataFrame, found: DataFrame) -> DataFrame:
    """Return rows of exchanges with cross-connection findings: the info column begins with all codes in order, as in
    the list, and the severity is the gravest."""
    by_key = found.groupBy(*ROW_KEY).agg(f.collect_set("code").alias("_codes"), f.max(_rank("severity")).alias("_rank"))
    before = f.regexp_extract("info", _MARKS, 0)
    codes = f.array_sort(f.array_union("_codes", f.regexp_extract_all(before, f.lit(r"\[(.*?)\]"), 1)))
    marks = f.concat(f.lit("["), f.array_join(codes, "] ["), f.lit("]"))
    rest = f.expr(f"regexp_replace(info, r'{_MARKS}', '')")
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    gravest = f.element_at(ranks, f.greatest(f.col("_rank"), _rank("severity")))
    words = f.concat_ws(" ", marks, f.nullif(rest, f.lit("")))
    has_findings = f.col("_codes").isNotNull()
    changed = {
        "info": f.when(has_findings, words).otherwise(f.col("info")),
        "severity": f.when(has_findings, gravest).otherwise(f.col("severity")),
    }
    return exchanges.join(f.broadcast(by_key), list(ROW_KEY), "left").withColumns(changed).select(*exchanges.columns)


def _rank(severity: str) -> Column:
    """Return the rank of a severity, from 1; null if there is none."""
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    return f.array_position(ranks, f.col(severity)).cast("int")


def finding_rows(found: DataFrame, exchanges: DataFrame) -> DataFrame:
    """Return findings as rows of `findings`, with the columns that come from their exchanges."""
    names = [column.name for column in (*PARTITIONS, *BY_NAME["findings"].columns)]
    exchange_columns = exchanges.select(*ROW_KEY, *(name for name in names if name not in found.columns))
    return exchange_columns.join(f.broadcast(found), list(ROW_KEY)).select(*names)
