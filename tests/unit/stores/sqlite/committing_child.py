"""A process that commits until it is killed: `python -m … DIRECTORY ROUND`.

Each commit writes one name four ways; when it has returned, the name is printed.
"""

import asyncio
import hashlib
import os
import sys
from datetime import timedelta
from pathlib import Path

from tests.fakes.manual_clock import EPOCH, ManualClock
from zeroclaw.store import (
    Append,
    Claim,
    Commit,
    DurablePoint,
    Expect,
    LogKind,
    Put,
    PutBlob,
    RowKind,
)
from zeroclaw.stores.sqlite import SqliteStore, open_store

TASKS = 8


def named(name: str, stream: str) -> Commit:
    """One name as a row, a log entry, a blob and a claim."""
    body = name.encode()
    return Commit(
        point=DurablePoint.HOUSEKEEPING,
        writes=(
            Claim(keys=(name,), until=EPOCH + timedelta(days=1)),
            Expect(kind=RowKind.COUNTER, key=name, version=0),
            Put(kind=RowKind.COUNTER, key=name, body=body),
            Append(log=LogKind.JOURNAL, stream=stream, body=body),
            PutBlob(digest=hashlib.sha256(body).hexdigest(), body=body),
        ),
    )


async def commit_for_ever(store: SqliteStore, task: str, start: str) -> None:
    number = 0
    while True:
        name = f"{start}-{task}-{number}"
        await store.commit(named(name, task))
        os.write(1, f"{name}\n".encode())
        number += 1


async def main(directory: Path, start: str) -> None:
    store = await open_store(directory, clock=ManualClock())
    async with asyncio.TaskGroup() as group:
        for task in range(TASKS):
            group.create_task(commit_for_ever(store, str(task), start))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
