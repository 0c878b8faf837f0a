"""The writer thread: many commits, one disk sync.

It takes one job, drains the queue (up to 256), applies each commit in a separate savepoint of one
transaction, and answers all of them after COMMIT. So a rejected commit does not affect the
others, and while one sync runs, the next group gathers: on a disk that syncs 300 times a second, 64
tasks commit thousands of times a second.

No caller is answered before COMMIT, not even a rejected one: if the first of two duplicates then
fails to reach the disk, the second must not have got "already claimed". Leases use the same
queue, so when a lease returns, every commit with an older fence is either on disk or will be
rejected.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from weakref import WeakValueDictionary

from zeroclaw.channel import Log
from zeroclaw.envelope import ConversationId
from zeroclaw.errors import Fenced, StoreRefused, StoreUnusable
from zeroclaw.store import (
    UNFENCED,
    Append,
    Claim,
    Commit,
    Delete,
    DropBlob,
    Fence,
    Put,
    PutBlob,
    RowKind,
    Trim,
    Write,
)
from zeroclaw.stores.sqlite.files import FILE_NAME, Opened, drop_copies, primary_code, unusable
from zeroclaw.stores.sqlite.statements import apply, empty_log, purge_claims, release_pages, rewrite
from zeroclaw.value import Value

_LEASES_PER_EPOCH = 2**32  # high bits: epoch, low bits: lease; together below 2**63


class Fences:
    """The newest fence of each conversation, as long as its holder has a reference to it.

    Once it is released, all older fences are invalid, so it need not be remembered.
    """

    def __init__(self, epoch: int) -> None:
        self._last = epoch * _LEASES_PER_EPOCH
        self._newest: WeakValueDictionary[ConversationId, Fence] = WeakValueDictionary()

    def lease(self, conversation: ConversationId) -> Fence:
        """Return a fence that is newer than all others of the conversation."""
        self._last += 1
        fence = Fence(conversation=conversation, token=self._last)
        self._newest[conversation] = fence
        return fence

    def check(self, commit: Commit) -> None:
        """Raise `Fenced` unless the commit may be written in its scope."""
        fence = commit.fence
        if fence is None:
            if commit.conversation is not None and commit.point not in UNFENCED:
                message = f"`{commit.point}` needs a fence of conversation `{commit.conversation}`"
                raise Fenced(message)
            return
        if fence.conversation != commit.conversation:
            message = f"a fence of `{fence.conversation}` was shown for `{commit.conversation}`"
            raise Fenced(message)
        if self._newest.get(fence.conversation) != fence:
            message = f"conversation `{fence.conversation}` has a newer fence"
            raise Fenced(message)


_MAX_QUEUED = 1024  # further callers wait
_GROUP = 256  # larger groups gained nothing when measured (2026-11)
_GROUP_BYTES = 4 * 2**20  # so that a few large blobs don't delay all other commits
_CLOSED = "the store is closed"


class CommitJob(Value):
    """A queued commit; `now_us` is when it was submitted."""

    commit: Commit
    now_us: int
    done: asyncio.Future[None]


class LeaseJob(Value):
    """A queued lease."""

    conversation: ConversationId
    done: asyncio.Future[Fence]


Job = CommitJob | LeaseJob
_Answer = Fence | StoreRefused | StoreUnusable | None


class Writer:
    """Owns the writing connection from opening to closing, on a separate thread."""

    def __init__(
        self, directory: Path, *, open_files: Callable[[], Opened], log: Log | None
    ) -> None:
        """Prepare the thread; `start` starts it.

        Args:
            directory: For the operator's line when writing fails.
            open_files: Called on the thread; `opened` raises whatever it raises.
            log: Gets `file_not_rewritten`, on the loop.
        """
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[Opened] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._path = directory / FILE_NAME
        self._open_files = open_files
        self._log = log
        self._slots = asyncio.Semaphore(_MAX_QUEUED)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._taken: list[Job] = []
        self._inode = 0
        self._is_log_due = True  # a kill may have left a log that was due
        self._before_closing: Callable[[], None] | None = None
        self._thread = Thread(target=self._run, name="zeroclaw-store-writer", daemon=True)

    # --- called on the loop ---

    def start(self) -> None:
        """Start the thread, which first opens the files."""
        self._thread.start()

    async def put(self, job: Job) -> None:
        """Queue a job when there is room; it is answered, at the latest when the writer ends."""
        await self._slots.acquire()
        if self._before_closing is not None or self.closed.done():
            self._answer([(job, StoreUnusable(_CLOSED))])
        else:
            self._jobs.put(job)

    def stop(self, before_closing: Callable[[], None]) -> None:
        """Finish the queued jobs, call `before_closing` on the thread, close the files, end."""
        self._before_closing = before_closing
        self._jobs.put(None)

    def _answer(self, answers: list[tuple[Job, _Answer]], cancelled: int = 0) -> None:
        for job, answer in answers:
            if job.done.done():  # its caller was cancelled
                continue
            if isinstance(answer, StoreRefused | StoreUnusable):
                job.done.set_exception(answer)
            elif isinstance(job, CommitJob):
                job.done.set_result(None)
            elif answer is not None:
                job.done.set_result(answer)
        for _ in range(len(answers) + cancelled):
            self._slots.release()

    def _end(self) -> None:
        jobs = list(self._taken)
        while not self._jobs.empty():  # no other thread takes jobs any more
            if (job := self._jobs.get()) is not None:
                jobs.append(job)
        if not self.closed.done():
            self.closed.set_result(None)
        line = _CLOSED if self._before_closing else "the store stopped by a fault; restart zeroclaw"
        if not self.opened.done():
            self.opened.set_exception(StoreUnusable(line))
        self._answer([(job, StoreUnusable(line)) for job in jobs])

    # --- runs on the thread ---

    def _call_on_loop(self, callback: Callable[[], None]) -> None:
        # If the loop was closed, no caller is left to tell; commits stay committed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _run(self) -> None:
        opened = self.opened
        with ExitStack() as stack:
            # Even if a bug ends the thread, all callers are answered and the lock is released.
            stack.callback(self._call_on_loop, self._end)
            try:
                files = self._open_files()
            except (StoreUnusable, MemoryError) as error:
                failure = error
                self._call_on_loop(lambda: None if opened.done() else opened.set_exception(failure))
                return
            stack.callback(files.close)
            fences = Fences(files.epoch)
            self._inode = self._path.stat().st_ino
            self._call_on_loop(lambda: None if opened.done() else opened.set_result(files))
            while self._take():
                self._work(files.connection, fences)
            if self._before_closing is not None:
                self._before_closing()

    def _take(self) -> bool:
        """Wait for jobs and take a group of them; False once asked to stop and all is done."""
        size_bytes = 0
        job = self._jobs.get()
        while job is not None:
            self._taken.append(job)
            size_bytes += _size_bytes(job)
            if len(self._taken) == _GROUP or size_bytes >= _GROUP_BYTES:
                return True
            try:
                job = self._jobs.get_nowait()
            except Empty:
                return True
        if self._taken:
            self._jobs.put(None)  # stop after these; no job is queued after a stop
        return bool(self._taken)

    def _work(self, connection: sqlite3.Connection, fences: Fences) -> None:
        waiting = [job for job in self._taken if not job.done.cancelled()]
        cancelled = len(self._taken) - len(waiting)
        if any(map(_ends_erasure, waiting)):
            # Before its end is written: after a kill, the whole erasure is carried out again.
            try:
                drop_copies(self._path.parent, datetime.max.replace(tzinfo=UTC))
                # First, as a log that filled the disk can't be emptied into a file that has to grow.
                empty_log(connection)
                rewrite(connection, self._path.parent)
            except (sqlite3.Error, OSError, MemoryError, UnicodeEncodeError) as error:
                # The last: SQLite is told the directory's name as text, and not every name is one.
                if (log := self._log) is not None:
                    reason = str(error) or "no memory is left"
                    self._call_on_loop(
                        partial(log, "file_not_rewritten", reason=reason, level="warning")
                    )
        answers = self._write_group(connection, fences, waiting)
        # The group is committed; pages that can't be released now are released next time.
        with suppress(sqlite3.Error):
            if not _REMOVALS.isdisjoint(_kinds(waiting)):
                self._is_log_due |= any(map(_ends_erasure, waiting))
                release_pages(connection)
            if self._is_log_due:
                # Old frames of the log hold erased messages until newer ones happen to cover them.
                self._is_log_due = not empty_log(connection)
        self._taken.clear()
        self._call_on_loop(lambda: self._answer(answers, cancelled))

    def _write_group(
        self, connection: sqlite3.Connection, fences: Fences, jobs: list[Job]
    ) -> list[tuple[Job, _Answer]]:
        if not any(isinstance(job, CommitJob) for job in jobs):
            return [(job, self._serve(connection, fences, job)) for job in jobs]
        if self._is_gone():
            message = f"`{self._path}` was removed or replaced while zeroclaw ran; start it again"
            return [(job, StoreUnusable(message)) for job in jobs]
        is_alone = len(jobs) == 1
        serve = self._serve if is_alone else self._serve_isolated
        try:
            connection.execute("BEGIN IMMEDIATE")
            answers = [(job, serve(connection, fences, job)) for job in jobs]
            is_undone = is_alone and isinstance(answers[0][1], StoreRefused)
            if not is_undone and Claim in _kinds(jobs):
                # Only commits that add claims pay for purging them.
                now_us = max(job.now_us for job in jobs if isinstance(job, CommitJob))
                purge_claims(connection, now_us=now_us)
            connection.execute("ROLLBACK" if is_undone else "COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if primary_code(error) == sqlite3.SQLITE_FULL and len(jobs) > 1:
                # A large blob that does not fit must not fail smaller commits, which may still fit.
                return [it for job in jobs for it in self._write_group(connection, fences, [job])]
            return [(job, unusable(error, self._path)) for job in jobs]
        return answers

    def _is_gone(self) -> bool:
        """Whether the file lost its name: SQLite would write to it all the same, for nothing."""
        try:
            return self._path.stat().st_ino != self._inode
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # its state is unknown, and SQLite has it open
            return False

    def _serve_isolated(self, connection: sqlite3.Connection, fences: Fences, job: Job) -> _Answer:
        """Serve a job in a savepoint, so that its rejection does not affect the others."""
        connection.execute("SAVEPOINT one")
        answer = self._serve(connection, fences, job)
        if isinstance(answer, StoreRefused):
            connection.execute("ROLLBACK TO one")
        connection.execute("RELEASE one")
        return answer

    def _serve(self, connection: sqlite3.Connection, fences: Fences, job: Job) -> _Answer:
        if isinstance(job, LeaseJob):
            return fences.lease(job.conversation)
        try:
            fences.check(job.commit)
            apply(connection, job.commit, now_us=job.now_us)
        except StoreRefused as refusal:
            return refusal
        return None


_REMOVALS = frozenset({Delete, Trim, DropBlob})
_WITH_BODY = (Put, Append, PutBlob)  # a union would be rebuilt at each check, on every commit


def _kinds(jobs: list[Job]) -> set[type[Write]]:
    commits = [job.commit for job in jobs if isinstance(job, CommitJob)]
    return {type(write) for commit in commits for write in commit.writes}


def _ends_erasure(job: Job) -> bool:
    writes = job.commit.writes if isinstance(job, CommitJob) else ()
    return any(isinstance(it, Delete) and it.kind is RowKind.FORGETTING for it in writes)


def _size_bytes(job: Job) -> int:
    writes = job.commit.writes if isinstance(job, CommitJob) else ()
    return sum([len(write.body) for write in writes if isinstance(write, _WITH_BODY)])
