"""Writes the records that are listed, in their order, in the formats of `kdissect records`."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from dissector.analysis.record_list import CarriedRecord, RecordList
from dissector.core.arrays import Int64
from dissector.export.record_formats import RecordFormat, RecordWriting
from tui.records_model import RecordsModel
from tui.screens.write_dialog import Notify

RECORD_FORMATS: Final = tuple(RecordFormat)


def record_chunks(model: RecordsModel, form: RecordFormat) -> Callable[[Notify], Iterator[bytes]]:
    """Return what writes the records that are listed now."""
    order = np.array([model.at(position) for position in range(len(model))], np.int64)
    places = model.places
    rows, numbers = places.row[order], places.place[order]

    def pieces(_report: Notify) -> Iterator[bytes]:
        return form.entry.write(model.capture, _records(model, rows, numbers), RecordWriting())

    return pieces


def _records(model: RecordsModel, rows: Int64, numbers: Int64) -> Iterator[CarriedRecord]:
    steps = np.diff(rows)
    if ((steps > 0) | ((steps == 0) & (np.diff(numbers) > 0))).all():  # not sorted: exchange by exchange
        wanted = set(zip(rows.tolist(), numbers.tolist(), strict=True))
        for found in RecordList(model.capture).of_rows(np.unique(rows)):
            if (found.row, found.place) in wanted:
                yield found
        return
    for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
        found_record = model.read(row, number)
        if found_record is not None:
            yield CarriedRecord(row, number, found_record)
