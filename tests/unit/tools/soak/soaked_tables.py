"""The tables of a small soak, made by an engine of a few lines and kept in SQLite: the laws are plain SQL."""

import sqlite3
from collections import Counter
from dataclasses import dataclass, field

WINDOW, DELAY = 10, 5
COLUMNS = {
    "arrived": "file, window_end, sensor, total, newest",
    "read_files": "batch, file",
    "micro_batches": "batch, watermark, late_watermark, next_watermark",
    "batch_rows": "batch, window_end, sensor, total, newest",
    "accepted": "batch, window_end, sensor, total, newest",
    "attempts": "batch, attempt",
    "attempted": "batch, attempt, window_end, sensor, total",
    "emitted": "batch, window_end, sensor, total",
    "told": "batch, attempt, watermark, state, dropped",
    "query": "delay",
}


def end(instant):
    return (instant // WINDOW + 1) * WINDOW


@dataclass
class Soaked:
    """What an engine does with some micro-batches of (event time, sensor), the last of them without rows."""

    arrivals: list[list[tuple[int, int]]]
    late_by_the_batch_before: bool = True
    replayed: int | None = None
    """A micro-batch that a second engine did again."""
    tables: dict[str, list[tuple]] = field(default_factory=dict)

    def __post_init__(self):
        self.tables = {name: [] for name in COLUMNS} | {"query": [(DELAY,)]}
        state, watermark, before = Counter(), 0, 0
        for batch, rows in enumerate([*self.arrivals, []]):
            file = f"part-{batch}"
            if rows:
                self.tables["read_files"].append((batch, file))
            late, groups = before if self.late_by_the_batch_before else watermark, Counter()
            for at, sensor in rows:
                groups[end(at), sensor] += 1
            dropped = 0
            for (window_end, sensor), total in groups.items():
                newest = max(at for at, of in rows if (end(at), of) == (window_end, sensor))
                self.tables["arrived"].append((file, window_end, sensor, total, newest))
                self.tables["batch_rows"].append((batch, window_end, sensor, total, newest))
                if window_end > late:
                    self.tables["accepted"].append((batch, window_end, sensor, total, newest))
                    state[window_end, sensor] += total
                else:
                    dropped += 1
            for attempt in (0, 1) if batch == self.replayed else (0,):
                self.tables["attempts"].append((batch, attempt))
                for (window_end, sensor), total in state.items():
                    if window_end <= watermark:
                        self.tables["attempted"].append((batch, attempt, window_end, sensor, total))
            for key, total in [*state.items()]:
                if key[0] <= watermark:
                    self.tables["emitted"].append((batch, *key, total))
                    del state[key]
            self.tables["told"].append((batch, 0, watermark, len(state), dropped))
            left = max([watermark, *(at - DELAY for at, _ in rows)])
            self.tables["micro_batches"].append((batch, watermark, late, left))
            before, watermark = watermark, left

    def answer(self, sql):
        """Columns and rows of a question's answer."""
        database = sqlite3.connect(":memory:")
        for name, columns in COLUMNS.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
            database.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns.split(',')))})", self.tables[name]
            )
        cursor = database.execute(sql)
        return [name for name, *_ in cursor.description], cursor.fetchall()
