"""What several connections tell: notes are brought together, and what they tell is put where rows of parts are.

Invariant: notes of one scope are in one partition, in the order of the capture: so what is made of them is what reading
the whole makes, whatever the parts were.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from dissector.findings import Severity
from dissector.pipeline.notes import BY, ORDER
from dissector.pipeline.tables import BY_NAME, PARTITIONS

KEYS: Final = ["capture", "packet", "start"]
"""What an exchange is found by."""
_SEVERITIES: Final = [each.value for each in Severity]


def together(notes: DataFrame, partitions: int) -> DataFrame:
    """Notes of all parts, as `notes.findings_of` wants them."""
    return notes.repartition(partitions, *BY).sortWithinPartitions(*ORDER)


def marked(exchanges: DataFrame, found: DataFrame) -> DataFrame:
    """Rows of exchanges with what was found: their words begin with the codes, as `session.exchange.Exchange.mark`
    has it, and the gravest severity holds."""
    codes = f.concat(f.lit("["), f.array_join(f.array_sort(f.collect_set("code")), "] ["), f.lit("]"))
    told = found.groupBy(*KEYS).agg(codes.alias("_marks"), f.max(_rank("severity")).alias("_rank"))
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    gravest = f.element_at(ranks, f.greatest(f.col("_rank"), _rank("severity")))
    words = f.concat_ws(" ", f.col("_marks"), f.nullif(f.col("info"), f.lit("")))
    is_told = f.col("_marks").isNotNull()
    changed = {
        "info": f.when(is_told, words).otherwise(f.col("info")),
        "severity": f.when(is_told, gravest).otherwise(f.col("severity")),
    }
    return exchanges.join(f.broadcast(told), KEYS, "left").withColumns(changed).select(*exchanges.columns)


def _rank(severity: str) -> Column:
    """From 1; null where there is none."""
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    return f.array_position(ranks, f.col(severity)).cast("int")


def rows(found: DataFrame, exchanges: DataFrame) -> DataFrame:
    """What was found as rows of `findings`: what these say of exchanges, the exchanges know."""
    names = [column.name for column in (*PARTITIONS, *BY_NAME["findings"].columns)]
    known = exchanges.select(*KEYS, *(name for name in names if name not in found.columns))
    return known.join(f.broadcast(found), KEYS).select(*names)
