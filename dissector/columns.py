"""A numpy column that grows: amortised appending, and room made for rows that are not written yet."""

import numpy as np
import numpy.typing as npt

_FIRST_ROOM = 1024


class Column:
    """One growing column. `values` is a view of what it holds: take it anew after each change of length."""

    __slots__ = ("_array", "_default", "_size")

    def __init__(self, dtype: npt.DTypeLike, default: int = 0) -> None:
        self._default = default
        self._array = self._room(_FIRST_ROOM, np.dtype(dtype))
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def values(self) -> npt.NDArray[np.int64]:
        """What it holds, `(n,)`, in the column's own dtype."""
        return self._array[: self._size]  # type: ignore[return-value]  # integer columns behave alike

    def grow(self, size: int) -> None:
        """Make it at least `size` rows long; new rows hold the default."""
        if size > len(self._array):
            room = self._room(max(size, 2 * len(self._array)), self._array.dtype)
            room[: self._size] = self._array[: self._size]
            self._array = room
        self._size = max(self._size, size)

    def _room(self, size: int, dtype: np.dtype[np.generic]) -> npt.NDArray[np.generic]:
        """Rows of the default; where that is 0 they cost nothing until they are written."""
        return np.full(size, self._default, dtype) if self._default else np.zeros(size, dtype)

    def extend(self, values: npt.ArrayLike) -> None:
        """Append rows."""
        rows = np.asarray(values, self._array.dtype)
        at = self._size
        self.grow(at + len(rows))
        self._array[at : at + len(rows)] = rows

    def replace(self, values: npt.NDArray[np.generic]) -> None:
        """Hold other rows, as many as before."""
        self._array[: self._size] = values
