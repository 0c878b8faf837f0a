"""The thread that writes: many commits, one sync of the disk.

It takes one job, drains what else is waiting (up to 256), applies each commit in a savepoint of
its own inside one transaction, and answers all of them after COMMIT. So a refused commit leaves
its neighbours whole, and while one sync runs the next group gathers: on a disk that syncs 300
times a second, 64 tasks commit thousands of times a second.

No caller is answered before COMMIT, the refused included: a duplicate of something that then failed
to reach the disk must not be told "already claimed". Leases take the same queue, so when a lease
returns, every commit under an older fence is either on disk or will be refused.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from weakref import WeakValueDictionary

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
    Trim,
)
from zeroclaw.stores.sqlite.files import FILE_NAME, Opened, is_full, unusable
from zeroclaw.stores.sqlite.statements import apply, purge_claims, release_pages
from zeroclaw.value import Value

_LEASES_PER_EPOCH = 2**32  # epochs above, leases below; together they stay under 2**63


class Fences:
    """The newest fence of each conversation, as long as it is held.

    Without that one no older fence is worth anything, so it need not be remembered.
    """

    def __init__(self, epoch: int) -> None:
        self._last = epoch * _LEASES_PER_EPOCH
        self._newest: WeakValueDictionary[ConversationId, Fence] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many conversations are held."""
        return len(self._newest)

    def lease(self, conversation: ConversationId) -> Fence:
        """Return a fence newer than every other one of the conversation."""
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
            message = f"somebody newer holds conversation `{fence.conversation}`"
            raise Fenced(message)


_GROUP = 256  # larger groups gained nothing when measured (2026-11)
_GROUP_BYTES = 4 * 2**20  # so that a few large blobs don't keep all others waiting
_CLOSED = "the store is closed"


class CommitJob(Value):
    """A commit on its way; `now_us` is when it was handed in."""

    commit: Commit
    now_us: int
    done: asyncio.Future[None]


class LeaseJob(Value):
    """A lease on its way."""

    conversation: ConversationId
    done: asyncio.Future[Fence]


Job = CommitJob | LeaseJob
_Answer = Fence | StoreRefused | StoreUnusable | None


class Writer:
    """Owns the writing connection from opening to closing, on a thread of its own."""

    def __init__(
        self,
        directory: Path,
        *,
        blob_cap_bytes: int,
        open_files: Callable[[], Opened],
        on_answers: Callable[[int], None],
    ) -> None:
        """Prepare; `start` begins.

        Args:
            directory: For the operator's line when writing fails.
            blob_cap_bytes: The largest blob.
            open_files: Called on the thread; what it raises, `opened` raises.
            on_answers: Told on the loop how many jobs left the queue.
        """
        self._loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[Opened] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._path = directory / FILE_NAME
        self._blob_cap_bytes = blob_cap_bytes
        self._open_files = open_files
        self._on_answers = on_answers
        # Bounded by the store, which lets in only so many at once.
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._taken: list[Job] = []
        self._before_closing: Callable[[], None] | None = None
        self._thread = Thread(target=self._run, name="zeroclaw-store-writer", daemon=True)

    # --- called on the loop ---

    def start(self) -> None:
        """Start the thread, which opens the files first."""
        self._thread.start()

    def put(self, job: Job) -> None:
        """Queue a job; answered at the latest when the writer ends."""
        if self.closed.done():
            self._answer([(job, StoreUnusable(_CLOSED))])
        else:
            self._jobs.put(job)

    def stop(self, before_closing: Callable[[], None]) -> None:
        """Finish what is queued, call `before_closing` on the thread, close, end."""
        self._before_closing = before_closing
        self._jobs.put(None)

    def _answer(self, answers: list[tuple[Job, _Answer]]) -> None:
        for job, answer in answers:
            if job.done.done():  # its caller was cancelled
                continue
            if isinstance(answer, StoreRefused | StoreUnusable):
                job.done.set_exception(answer)
            elif isinstance(job, CommitJob):
                job.done.set_result(None)
            elif answer is not None:
                job.done.set_result(answer)
        self._on_answers(len(answers))

    def _end(self) -> None:
        left = list(self._taken)
        while True:
            try:
                job = self._jobs.get_nowait()
            except Empty:
                break
            if job is not None:
                left.append(job)
        if not self.closed.done():
            self.closed.set_result(None)
        line = _CLOSED if self._before_closing else "the store stopped by a fault; restart zeroclaw"
        self._answer([(job, StoreUnusable(line)) for job in left])

    # --- runs on the thread ---

    def _tell(self, callback: Callable[[], None]) -> None:
        # A loop that was closed under us has no caller left to tell; what is committed stays so.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _run(self) -> None:
        try:
            files = self._open_files()
        except StoreUnusable as error:
            trouble = error
            self._tell(lambda: None if self.opened.done() else self.opened.set_exception(trouble))
            self._tell(self._end)
            return
        try:
            fences = Fences(files.epoch)
            self._tell(lambda: None if self.opened.done() else self.opened.set_result(files))
            while self._take():
                self._work(files.connection, fences)
            if self._before_closing is not None:
                self._before_closing()
        finally:
            # Also on a fault of our own: all callers are answered, and the lock is let go.
            files.close()
            self._tell(self._end)

    def _take(self) -> bool:
        """Wait for jobs, take a group of them; False once asked to stop and all is done."""
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
            self._jobs.put(None)  # stop again after these; nothing is put behind a stop
        return bool(self._taken)

    def _work(self, connection: sqlite3.Connection, fences: Fences) -> None:
        answers: list[tuple[Job, _Answer]] = []
        waiting: list[Job] = []
        for job in self._taken:
            if job.done.cancelled():  # its caller was cancelled
                answers.append((job, None))
            else:
                waiting.append(job)
        answers.extend(self._write_group(connection, fences, waiting))
        if any(_holds(job, _REMOVALS) for job in waiting):
            # What was written stays written; pages that can't be released now are next time.
            with suppress(sqlite3.Error):
                release_pages(connection)
        self._taken.clear()
        self._tell(lambda: self._answer(answers))

    def _write_group(
        self, connection: sqlite3.Connection, fences: Fences, jobs: list[Job]
    ) -> list[tuple[Job, _Answer]]:
        if not any(isinstance(job, CommitJob) for job in jobs):
            return [(job, self._serve(connection, fences, job)) for job in jobs]
        is_alone = len(jobs) == 1
        serve = self._serve if is_alone else self._serve_among_others
        try:
            connection.execute("BEGIN IMMEDIATE")
            answers = [(job, serve(connection, fences, job)) for job in jobs]
            is_undone = is_alone and isinstance(answers[0][1], StoreRefused)
            if not is_undone and any(_holds(job, (Claim,)) for job in jobs):
                # Only what adds to the table pays for its bound.
                purge_claims(connection, now_us=max(_handed_in_us(job) for job in jobs))
            connection.execute("ROLLBACK" if is_undone else "COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if is_full(error) and len(jobs) > 1:
                # One large blob that does not fit must not refuse the words of all others.
                return [
                    answer
                    for job in jobs
                    for answer in self._write_group(connection, fences, [job])
                ]
            return [(job, unusable(error, self._path)) for job in jobs]
        return answers

    def _serve_among_others(
        self, connection: sqlite3.Connection, fences: Fences, job: Job
    ) -> _Answer:
        """Serve a job whose refusal leaves those beside it whole."""
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
            apply(connection, job.commit, now_us=job.now_us, blob_cap_bytes=self._blob_cap_bytes)
        except StoreRefused as refusal:
            return refusal
        return None


def _handed_in_us(job: Job) -> int:
    return job.now_us if isinstance(job, CommitJob) else 0


# As tuples: a union would be made anew at each look, on the way of each commit.
_REMOVALS = (Delete, Trim, DropBlob)
_WITH_BODY = (Put, Append, PutBlob)


def _holds(job: Job, kinds: tuple[type[object], ...]) -> bool:
    return isinstance(job, CommitJob) and any(
        isinstance(write, kinds) for write in job.commit.writes
    )


def _size_bytes(job: Job) -> int:
    if isinstance(job, LeaseJob):
        return 0
    return sum([len(write.body) for write in job.commit.writes if isinstance(write, _WITH_BODY)])
