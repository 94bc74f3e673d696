"""The messages of many rows, read at once by the kernel, without an `Exchange` for each.

Rows are numbered as `RowSpace` says, and those given in arrays are ascending. What is asked for rows of connections
leaves out entries of files.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.field_keys import Choose, FieldKeys, Visit, no_column
from dissector.capture_session.findings_pass import FindingsPass
from dissector.capture_session.row_space import RowSpace
from dissector.capture_session.stage_pipeline import StagePipeline
from dissector.core.arrays import Bool, Int64, UInt8
from dissector.core.finding import Finding
from dissector.exchange.decoder import ExchangeDecoder
from dissector.index.equal_messages import first_equal
from dissector.protocol.embedded.topics import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.kernel.json_messages import join

if TYPE_CHECKING:  # imported on use: a command needs few of them
    from dissector.bulk.body_fields import BodyFields, ElementNames, OfBodies, OfElements
    from dissector.bulk.body_partitions import BodyPartitions, Lists, OfPartitions
    from dissector.bulk.held_messages import HeldMessages
    from dissector.bulk.info_texts import InfoTexts
    from dissector.bulk.json_lines import JsonLines, JsonText
    from dissector.bulk.message_answers import MessageAnswers
    from dissector.bulk.message_shapes import Traced
    from dissector.bulk.message_texts import MessageTexts, TextReader
    from dissector.bulk.packed_exchanges import PackedBodies
    from dissector.bulk.record_columns import CarriedColumns, RecordsFields, RecordsOfRows
    from dissector.bulk.single_batches import SingleBatches, SingleBatchReader
    from dissector.bulk.subject_columns import SubjectColumns, SubjectsOfRows
    from dissector.bulk.tested_fields import Test, TestedFields, TestedMessages
    from dissector.core.columns import ValueNumbers
    from dissector.index.session_set import SessionChange
    from dissector.protocol.codec.program import Program
    from dissector.protocol.message_layout import MessageLayout

ROWS_PER_STEP: Final = 1 << 16
"""Rows whose messages are read together."""


class PackedRows(NamedTuple):
    """Rows that need no `Exchange`, and what they have."""

    rows: Int64
    bodies: "PackedBodies"
    marks: dict[int, list[Finding]]
    """The findings of the examination, by the places of the rows that have some."""
    messages: "ManyMessages"
    """What else is to be read of these rows, until the next ones come."""


class ManyMessages:
    """What messages of rows have, by columns. Each way to read them keeps the programs that it made."""

    def __init__(
        self, pipeline: StagePipeline, rows: RowSpace, decoder: ExchangeDecoder, findings: FindingsPass,
        held: "HeldMessages | None" = None,
    ) -> None:  # fmt: skip
        """What is `held` is all that is asked for, if it is given."""
        self._pipeline = pipeline
        self._indexer = pipeline.indexer
        self._rows = rows
        self._decoder = decoder
        self._findings = findings
        self._held = held
        self._bodies = held or BodyColumns(pipeline.indexer, pipeline.store, show_secrets=decoder.shows_secrets)

    def apart(self) -> "ManyMessages":
        """The same for another thread: what reads has buffers of its own."""
        return ManyMessages(self._pipeline, self._rows, self._decoder, self._findings)

    @cached_property
    def _json(self) -> "JsonLines":
        from dissector.bulk.json_lines import JsonLines

        return JsonLines(self._indexer, self._pipeline.store, self._decoder, self._is_ended)

    @cached_property
    def _texts(self) -> "TextReader":
        from dissector.bulk.message_texts import TextReader

        return TextReader(self._bodies)

    @cached_property
    def _info(self) -> "InfoTexts":
        from dissector.bulk.info_texts import InfoTexts

        bodies = self._held or BodyColumns(
            self._indexer, self._pipeline.store, show_secrets=self._decoder.shows_secrets, for_words=True
        )
        return InfoTexts(self._indexer, bodies, self._decoder, self._is_ended)

    def _is_ended(self, connection: int) -> bool:
        """Whether a connection was closed."""
        return any(self._pipeline.transport.connections.ended(connection))

    @cached_property
    def answers(self) -> "MessageAnswers":
        """Answers what filters ask of messages, by rows of the index."""
        from dissector.bulk.message_answers import MessageAnswers

        return MessageAnswers(self._bodies, self._decoder, self._indexer.conversation_state.topic_names)

    @cached_property
    def _subjects(self) -> "SubjectColumns":
        from dissector.bulk.subject_columns import SubjectColumns

        return SubjectColumns(self._indexer, self._bodies, self._decoder)

    @cached_property
    def _records(self) -> "RecordsOfRows":
        from dissector.bulk.record_columns import RecordsOfRows

        return RecordsOfRows(self._bodies)

    @cached_property
    def _tested(self) -> "TestedFields":
        from dissector.bulk.tested_fields import TestedFields

        return TestedFields(self._bodies)

    @cached_property
    def _single_batches(self) -> "SingleBatchReader":
        from dissector.bulk.single_batches import SingleBatchReader

        return SingleBatchReader(self._bodies)

    @cached_property
    def _fields(self) -> "BodyFields":
        from dissector.bulk.body_fields import BodyFields

        return BodyFields(self._bodies)

    @cached_property
    def _partitions(self) -> "BodyPartitions":
        from dissector.bulk.body_partitions import BodyPartitions

        return BodyPartitions(self._bodies)

    def info(self, rows: range | Int64, *, with_marks: bool = True) -> list[str | None]:
        """The info column of rows, with the findings of the examination or without; None for entries of files, and
        where a row has to be decoded for it."""
        entries, indexed = self._rows.split(rows)
        found: list[str | None] = [None] * len(entries)
        numbers = np.asarray(indexed, np.int64)
        for first in range(0, len(numbers), ROWS_PER_STEP):
            some = numbers[first : first + ROWS_PER_STEP]
            found += self._info.texts(some, self._cross_message(some) if with_marks else {})
        return found

    def json_lines(self, rows: range | Int64) -> "Iterator[JsonText]":
        """The JSON lines of rows, some at a time; empty for entries of files, and where a row has to be decoded."""
        from dissector.bulk.json_lines import JsonText

        entries, indexed = self._rows.split(rows)
        if len(entries):
            yield JsonText(iter(()), np.zeros(len(entries), np.int64))
        for some in self._json.steps(np.asarray(indexed, np.int64)):
            yield from self._json.lines(some, self._rows.entries, self._rows.files, self._cross_message(some))

    def packed_exchanges(self, rows: range | Int64, *, kept: bool = True) -> Iterator[PackedRows]:
        """Rows for tables, some at a time; entries of files, and rows that have to be decoded, are in none. `kept` says
        whether their messages have the bytes of records."""
        from dissector.bulk.held_messages import HeldMessages
        from dissector.bulk.packed_exchanges import PackedExchanges

        _, indexed = self._rows.split(rows)
        held = HeldMessages(self._indexer, self._pipeline.store, show_secrets=self._decoder.shows_secrets)
        packed = PackedExchanges(self._indexer, held, self._decoder, self._is_ended, kept=kept)
        messages = ManyMessages(self._pipeline, self._rows, self._decoder, self._findings, held)
        for some in packed.steps(np.asarray(indexed, np.int64)):
            for part, found in packed.bodies(some):
                whole = part[found.at]
                yield PackedRows(self._rows.capture_rows(whole), found, self._cross_message(whole), messages)

    def frame_bytes(
        self, rows: Int64, *, is_request: bool, takes: "Callable[[MessageLayout], bool]"
    ) -> "tuple[UInt8, Int64]":
        """The bytes of messages of rows of connections, with secrets masked, one behind the other, and the size of
        each, `(n,)`; 0 where there is none, and for layouts that are not taken."""
        indexed = self._rows.index_rows(rows)
        addresses, sizes = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int64)
        found = [each for each in self._bodies.messages(indexed, is_request=is_request) if takes(each.layout)]
        for messages in found:  # which keep the memory
            addresses[messages.at], sizes[messages.at] = messages.frames.addresses, messages.frames.sizes
        return join(addresses, sizes), sizes

    def may_read_records(self, rows: Int64) -> Bool:
        """Which rows that are exchanges with a request may be read by `records`; others have to be decoded."""
        return self._records.may_read(self._rows.index_rows(rows))

    def records(self, rows: Int64, read: Callable[[Int64], object] = lambda _: None) -> "Iterator[CarriedColumns]":
        """The records of rows that are exchanges: valid until the next. A row may be refused. `read` gets the places of
        rows that are read so."""
        names = {**self._indexer.conversation_state.topic_names, CLUSTER_METADATA_ID: CLUSTER_METADATA}
        return self._records.of(self._rows.index_rows(rows), names, read)

    def produced_records(self, rows: Int64, read: Callable[[Int64], object]) -> "Iterator[RecordsFields]":
        """The `records` fields of the requests of rows that are Produce exchanges. `read` gets the places of rows that
        are read so; others have to be decoded."""
        return self._records.fields(self._rows.index_rows(rows), self._indexer.conversation_state.topic_names, read)

    def field_keys(
        self,
        keys: Choose,
        values: Choose = no_column,
        nonzero: Choose = no_column,
        *,
        is_request: bool,
        outlines: Choose = no_column,
        in_columns: bool = False,
    ) -> Callable[[Int64, Visit | None], Int64]:
        """What numbers rows of connections by fields of their messages: see `FieldKeys`."""
        found = FieldKeys(
            self._bodies, keys, nonzero, values, is_request=is_request, outlines=outlines, in_columns=in_columns
        )
        return lambda rows, visit: found.numbers(self._rows.index_rows(rows), visit)

    def shapes(
        self, trace: "Callable[[MessageLayout, bytes], Traced]"
    ) -> "Callable[[Int64, bool], list[Traced | None]]":
        """What traces messages of rows of connections, of one shape one: see `MessageShapes`."""
        from dissector.bulk.message_shapes import MessageShapes

        shapes = MessageShapes(self._bodies, trace)
        return lambda rows, is_request: shapes.traced(self._rows.index_rows(rows), is_request=is_request)

    def texts(self, rows: Int64, *, is_request: bool) -> "list[MessageTexts | None]":
        """The texts in messages of rows of connections: see `TextReader`."""
        return self._texts.of(self._rows.index_rows(rows), is_request=is_request)

    def texts_of_frames(self, layout: "MessageLayout", frames: Sequence[bytes]) -> "list[MessageTexts | None]":
        """The texts in frames of one layout: see `TextReader`."""
        return self._texts.of_frames(layout, frames)

    @property
    def topic_names(self) -> Mapping[str, str]:
        """The names of topics by their ids, as far as the capture has taught them."""
        return self._indexer.conversation_state.topic_names

    def subjects(self, rows: Int64) -> "SubjectsOfRows":
        """The topics and groups of rows of connections: see `SubjectColumns`."""
        return self._subjects.of(self._rows.index_rows(rows))

    def numbers(self, rows: Int64, names: Sequence[str], *, is_request: bool) -> "dict[str, OfBodies]":
        """Numbers that stand alone in the bodies of rows of connections, by name: see `BodyFields`."""
        return self._fields.numbers(self._rows.index_rows(rows), names, is_request=is_request)

    def body_texts(
        self, rows: Int64, names: Sequence[str], texts: "ValueNumbers[str]", *, is_request: bool
    ) -> dict[str, Int64]:
        """Texts that stand alone in the bodies of rows of connections, by name: see `BodyFields`."""
        return self._fields.texts(self._rows.index_rows(rows), names, texts, is_request=is_request)

    def elements(
        self, rows: Int64, names: "ElementNames", texts: "ValueNumbers[str]", *, is_request: bool
    ) -> "OfElements":
        """Elements of a list in the bodies of rows of connections: see `BodyFields`."""
        return self._fields.elements(self._rows.index_rows(rows), names, texts, is_request=is_request)

    def tested(
        self, rows: Int64, tests: "Callable[[int, Program], Sequence[Test]]", *, questions: int,
        is_request: bool, joins: bool,
    ) -> "TestedMessages":  # fmt: skip
        """Which messages of rows of connections pass tests of their numbers: see `TestedFields`."""
        return self._tested.of(
            self._rows.index_rows(rows), tests, questions=questions, is_request=is_request, joins=joins
        )

    def single_batches(self, rows: Int64, topic_texts: "ValueNumbers[str]") -> "SingleBatches":
        """The batches of rows that are Produce exchanges of connections: see `SingleBatchReader`."""
        names = self._indexer.conversation_state.topic_names
        return self._single_batches.of(self._rows.index_rows(rows), names, topic_texts)

    def partitions(
        self, rows: Int64, lists: "Mapping[int, Lists]", fields: Sequence[str], alone: Sequence[str],
        texts: "ValueNumbers[str]", *, is_request: bool,
    ) -> "OfPartitions":  # fmt: skip
        """The partitions of topics in the bodies of rows of connections: see `BodyPartitions`."""
        names = self._indexer.conversation_state.topic_names
        return self._partitions.of(
            self._rows.index_rows(rows), lists, fields, alone, names, texts, is_request=is_request
        )

    def first_equal(self, rows: Int64, *, is_request: bool) -> Int64:
        """By row of connections, which all have a request, or all a response to one, the place in `rows` of the first
        one that has the same message: of one API and version, and the same to the byte but for the correlation id."""
        indexed = self._rows.index_rows(rows)
        return first_equal(self._indexer.table, self._indexer.frames, indexed, is_request=is_request)

    def answer_none(self, rows: Int64) -> Bool:
        """Which rows of connections, all of them responses without a request, answer none: see `OrphanDecoder`."""
        return self._decoder.answer_none(self._rows.index_rows(rows))

    def fetch_session(self, row: int) -> dict[str, list[int]] | None:
        """The partitions of a row that is an incremental Fetch, by topic; None where they are unknown."""
        return self._decoder.fetch_session(self._rows.index_row(row))

    def fetch_session_changes(
        self, row: int, *, is_first: bool, names_topics: bool
    ) -> "tuple[bool, list[SessionChange]]":
        """Whether the session of an incremental Fetch is another one than before, and what was added since and
        forgotten: since the Fetch of the same connection that was asked for last, unless this is the first one."""
        return self._decoder.fetch_session_changes(
            self._rows.index_row(row), is_first=is_first, names_topics=names_topics
        )

    def _cross_message(self, index_rows: Int64) -> dict[int, list[Finding]]:
        """The findings of the examination of rows of the index, by the places of those that have some."""
        marked, _ = self._findings.cross_message_summaries(index_rows)
        return {at: self._findings.of_index_row(int(index_rows[at])) for at in np.flatnonzero(marked).tolist()}
