"""What several connections tell: notes are brought together, and what they tell is put where rows of parts are.

Invariant: notes of one scope are in one partition, in the order of the capture: so what is made of them is what reading
the whole makes, whatever the parts were.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from dissector.core.finding import Severity
from dissector.findings.registry import FINDERS
from dissector.pipeline.observations import BY, ORDER
from dissector.pipeline.table_schemas import BY_NAME, PARTITIONS

KEYS: Final = ["capture", "packet", "start"]
"""What an exchange is found by."""
_MARKS: Final = rf"^(\[({'|'.join(sorted({each.explanation.code for each in FINDERS}))})\]( |$))+"
"""What the words of an exchange begin with that several rows tell something of."""
_SEVERITIES: Final = [each.value for each in Severity]


def partitioned(notes: DataFrame, partitions: int) -> DataFrame:
    """Notes of all parts, as `notes.findings_of` wants them."""
    return notes.repartition(partitions, *BY).sortWithinPartitions(*ORDER)


def with_found(exchanges: DataFrame, found: DataFrame) -> DataFrame:
    """Rows of exchanges with what was found: their words begin with all codes in order, as `session.exchange.Exchange`
    has it (`mark`), and the gravest severity holds."""
    told = found.groupBy(*KEYS).agg(f.collect_set("code").alias("_codes"), f.max(_rank("severity")).alias("_rank"))
    before = f.regexp_extract("info", _MARKS, 0)
    codes = f.array_sort(f.array_union("_codes", f.regexp_extract_all(before, f.lit(r"\[(.*?)\]"), 1)))
    marks = f.concat(f.lit("["), f.array_join(codes, "] ["), f.lit("]"))
    rest = f.expr(f"regexp_replace(info, r'{_MARKS}', '')")
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    gravest = f.element_at(ranks, f.greatest(f.col("_rank"), _rank("severity")))
    words = f.concat_ws(" ", marks, f.nullif(rest, f.lit("")))
    is_told = f.col("_codes").isNotNull()
    changed = {
        "info": f.when(is_told, words).otherwise(f.col("info")),
        "severity": f.when(is_told, gravest).otherwise(f.col("severity")),
    }
    return exchanges.join(f.broadcast(told), KEYS, "left").withColumns(changed).select(*exchanges.columns)


def _rank(severity: str) -> Column:
    """From 1; null where there is none."""
    ranks = f.array(*(f.lit(each) for each in _SEVERITIES))
    return f.array_position(ranks, f.col(severity)).cast("int")


def finding_rows(found: DataFrame, exchanges: DataFrame) -> DataFrame:
    """What was found as rows of `findings`: what these say of exchanges, the exchanges know."""
    names = [column.name for column in (*PARTITIONS, *BY_NAME["findings"].columns)]
    known = exchanges.select(*KEYS, *(name for name in names if name not in found.columns))
    return known.join(f.broadcast(found), KEYS).select(*names)
