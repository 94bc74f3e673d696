"""A capture, opened: its index filled as it is read, its exchanges decoded on demand.

`Capture` is a facade over parts, a file each: `StagePipeline` reads packets into the index, `ExchangeIndex` has its
rows as columns, `ManyMessages` their messages, `RowFrames` their bytes, `ConnectionIndex` has connections,
`ExchangeCache` decodes rows, `FindingsPass` examines them, `IncrementalReading` makes checkpoints. `RowSpace` numbers
rows and connections for all of them.
"""

from dissector.capture_session.facade import Capture
from dissector.capture_session.many_messages import PackedRows
from dissector.capture_session.row_frames import FrameSpan
from dissector.capture_session.stage_pipeline import Progress

__all__ = ["Capture", "FrameSpan", "PackedRows", "Progress"]
