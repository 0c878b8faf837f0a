"""Scripts of models that loop, and of honest ones that only seem to, on the product's tools.

A script lists the model's calls, round by round, for any results. `SEEN` was written before the
thresholds of `turn/loop_detection.py` were fixed, `UNSEEN` afterwards: two of its loops were missed and
one honest script, the ten words, was stopped; since then a near-equal call counts half. `FRESH` had one
miss and one false stop; since then a second look is free and another time-out makes no difference.
`LATER` was written after that, and `NOISY` before numbers in results counted little.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle, islice

from zeroclaw.value import Value

Call = tuple[str, Mapping[str, object] | str]
Round = Sequence[Call]
LENGTH = 45
"""Rounds of a looping script; a turn has 50."""


class Scripts(Value):
    """Looping and honest scripts, by name."""

    looping: Mapping[str, Sequence[Round]]
    honest: Mapping[str, Sequence[Round]]


def write(path: str, text: str) -> Call:
    return "write_file", {"path": path, "content": text}


def read(path: str, **more: int) -> Call:
    return "read_file", {"path": path, **more}


def edit(path: str, old: str, new: str) -> Call:
    return "edit_file", {"path": path, "old_text": old, "new_text": new}


def search(pattern: str, **more: object) -> Call:
    return "search_files", {"pattern": pattern, **more}


def shell(command: str) -> Call:
    return "shell", {"command": command}


def remember(text: str) -> Call:
    return "remember", {"text": text}


def recall(query: str, **more: int) -> Call:
    return "recall", {"words": query, **more}


def loop(*rounds: Round, after: Iterable[Round] = ()) -> list[Round]:
    """Return a script that repeats these rounds, after others."""
    return [*after, *islice(cycle(rounds), LENGTH)]


def rounds(calls: Iterable[Call]) -> list[Round]:
    """Return a script with one call per round."""
    return [(call,) for call in calls]


HELLO: Round = (write("a.txt", "hello\n"), write("b.txt", "bye\n"), write("c.txt", "hm\n"))
POEM = "".join(f"line {number}\n" for number in range(1, 1001))
PROGRAM = "n = 0\nassert n == 7, n\n"

SEEN = Scripts(
    looping={
        "reads one file": loop((read("a.txt"),), after=[HELLO]),
        "reads what is not there": loop((read("missing.txt"),)),
        "lists by a command": loop((shell("ls"),), after=[HELLO]),
        "fails by a command": loop((shell("cat nothing-here"),)),
        "searches for the same": loop((search("needle"),), after=[HELLO]),
        "searches in other words": [
            (search(f"needle {number}", path="."),) for number in range(LENGTH)
        ],
        "two files in turn": loop((read("a.txt"),), (read("b.txt"),), after=[HELLO]),
        "a command and a file": loop((shell("ls"),), (read("a.txt"),), after=[HELLO]),
        "three files in turn": loop(
            (read("a.txt"),), (read("b.txt"),), (read("c.txt"),), after=[HELLO]
        ),
        "a tool that is not there": loop((("browse", {"url": "https://x.example"}),)),
        "no JSON": loop((("read_file", '{"path": "a.txt'),)),
        "a wrong argument": loop((("read_file", {"file": "a.txt"}),)),
        "writes the same": loop((write("a.txt", "the same\n"),)),
        "edits what is not there": loop((edit("a.txt", "good", "bad"),), after=[HELLO]),
        "recalls the same": loop((recall("birthday"),)),
        "forgets what is forgotten": loop((("forget_note", {"number": 7}),)),
        "the same two side by side": loop((read("a.txt"), read("b.txt")), after=[HELLO]),
        "lists a directory": loop((("list_files", {"path": "."}),), after=[HELLO]),
        "with case and without": loop(
            (search("needle", ignore_case=True),), (search("needle", ignore_case=False),)
        ),
        "to and fro": loop(
            (shell("mv a.txt d.txt && ls"),), (shell("mv d.txt a.txt && ls"),), after=[HELLO]
        ),
    },
    honest={
        "answers at once": [],
        "reads ten files": [
            [write(f"{number}.txt", f"text {number}\n") for number in range(10)],
            *rounds(read(f"{number}.txt") for number in range(10)),
        ],
        "reads a long file": [
            (write("poem.txt", POEM),),
            *rounds(read("poem.txt", first_line=first, max_lines=50) for first in range(1, 1001, 50)),
        ],
        "reads beyond the end": [
            HELLO,
            *rounds(read("a.txt", first_line=first) for first in range(2, 22)),
        ],
        "writes and reads back": [
            step
            for number in range(12)
            for step in ((write(f"{number}.txt", "same\n"),), (read(f"{number}.txt"),))
        ],
        "mends until it works": [
            (write("t.py", PROGRAM),),
            *(
                step
                for number in range(7)
                for step in (
                    (shell("python3 t.py"),),
                    (edit("t.py", f"n = {number}\n", f"n = {number + 1}\n"),),
                )
            ),
            (shell("python3 t.py"),),
        ],
        "mends in vain for a while": [
            (write("t.sh", "# 0\nfalse\n"),),
            *(
                step
                for number in range(10)
                for step in (
                    (shell("sh t.sh"),),
                    (edit("t.sh", f"# {number}\n", f"# {number + 1}\n"),),
                )
            ),
        ],
        "waits for a job that gets on": rounds(
            shell("echo x >> job; wc -l < job") for _ in range(20)
        ),
        "waits for a job that does not for a while": [
            *rounds(shell("cat state") for _ in range(4)),
            (write("state", "ready\n"),),
            *rounds(shell("cat state") for _ in range(4)),
        ],
        "makes twenty files alike": rounds(write(f"{n}/empty.txt", "") for n in range(20)),
        "labels twenty things": rounds(shell(f"true {number}") for number in range(20)),
        "looks for ten things": [
            HELLO, *rounds(search(word) for word in ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
        ],
        "looks for six things in one place": [
            HELLO, *rounds(search(word, path=".") for word in ["one", "two", "three", "four", "five", "six"])
        ],
        "remembers twelve things": rounds(remember(f"number {number}") for number in range(12)),
        "tidies ten files and tests each time": [
            step
            for number in range(10)
            for step in ((write(f"{number}.py", "pass\n"),), (shell("true"),), (shell("echo ok"),))
        ],
        "guesses where it is": rounds(read(f"{name}/readme") for name in "abcdefghijkl"),
        "looks again after each change": [
            step
            for number in range(9)
            for step in ((write("a.txt", f"{number}\n"),), (read("a.txt"),), (shell("ls"),))
        ],
        "asks for many things side by side": [
            [write(f"{number}.txt", f"{number}\n") for number in range(12)],
            [read(f"{number}.txt") for number in range(12)],
            [read(f"{number}.txt") for number in range(12)],
        ],
        "reads what was cut": [
            (write("poem.txt", POEM * 3),),
            *rounds(read("poem.txt", first_line=first) for first in range(1, 3001, 500)),
        ],
        "tries three times": [
            *rounds(shell("cat nothing-here") for _ in range(3)), (write("nothing-here", "x"),),
            *rounds(shell("cat nothing-here") for _ in range(2)),
        ],
    },
)  # fmt: skip
UNSEEN = Scripts(
    looping={
        "shows the date": loop((shell("date +%Y"),)),
        "who am i": loop((shell("id"),), (shell("pwd"),), (shell("uname"),)),
        "greps in other words": [
            (search(f"todo|fixme {number}", regex=True, path="."),) for number in range(LENGTH)
        ],
        "reads with other spelling": loop(
            (("read_file", '{"path":"a.txt"}'),), (("read_file", '{ "path" : "a.txt" }'),),
            after=[HELLO],
        ),
        "a read and a failing edit": loop(
            (read("a.txt"),), (edit("a.txt", "nope", "yes"),), after=[HELLO]
        ),
        "writes and reads the same": loop(
            (write("a.txt", "x\n"),), (read("a.txt"),)
        ),
        "does much first": loop(
            (read("a.txt"),), after=[HELLO, *rounds(write(f"{n}.md", f"{n}\n") for n in range(20))]
        ),
        "does something in between once": [
            HELLO, *[(read("a.txt"),)] * 4, (write("d.txt", "new\n"),), *[(read("a.txt"),)] * 40
        ],
        "recalls nothing in other words": loop(*rounds(
            recall(query) for query in ("birthday", "born", "date of birth", "age", "when born")
        )),
        "remembers the same": loop((remember("Ann likes tea."),), after=[HELLO]),
        "five files in turn": loop(*rounds(read(f"{n}.txt") for n in range(5))),
        "a bad regular expression": loop((search("(", regex=True),)),
        "an unknown tool in other words": [
            (("browse", {"url": "https://x.example", "try": number}),) for number in range(LENGTH)
        ],
        "outside the workspace": [
            (("write_file", {"path": "/etc/motd", "content": f"hi {n}"}),) for n in range(LENGTH)
        ],
        "sees the same by two commands": loop(
            (shell("ls"), shell("ls -a")), (shell("ls -a"), shell("ls")), after=[HELLO]
        ),
        "empty arguments": loop((("list_files", {}),), after=[HELLO]),
        "waits for what never comes": loop((shell("test -f ready && echo yes"),)),
        "turns a switch": loop(
            (write("switch", "on\n"),), (write("switch", "off\n"),)
        ),
        "reads one file and writes a diary": [
            HELLO,
            *(
                step
                for number in range(22)
                for step in ((read("a.txt"),), (write("diary.txt", f"day {number}\n" * number),))
            ),
        ],
        "asks for the time": loop((shell("date +%s%N"),)),
    },
    honest={
        "one call": rounds([shell("ls")]),
        "compares versions": [
            HELLO, *rounds(read(name) for name in ("a.txt", "b.txt", "a.txt", "b.txt", "c.txt"))
        ],
        "goes through pages of results": [
            (write("poem.txt", POEM),),
            *rounds(
                ("read_file", {"path": "poem.txt", "first_line": 1 + 10 * n, "max_lines": 10})
                for n in range(30)
            ),
        ],
        "renames twenty files": [
            [write(f"{number}.old", "") for number in range(20)],
            *rounds(shell(f"mv {number}.old {number}.new") for number in range(20)),
        ],
        "counts words in many files": [
            [write(f"{number}.txt", "three words here\n") for number in range(15)],
            *rounds(shell(f"wc -w < {number}.txt") for number in range(15)),
        ],
        "fixes lint in many files": [
            step
            for number in range(8)
            for step in ((write(f"{number}.py", "x = 1\n"),), (shell("python3 -m compileall -q ."),))
        ],
        "builds up a file": [
            step
            for number in range(10)
            for step in ((shell(f"echo {number} >> log"),), (read("log"),))
        ],
        "waits for a download": rounds(shell("echo >> f; wc -c < f; test -s f") for _ in range(12)),
        "waits a while for nothing": [*rounds(shell("test -f done") for _ in range(6)),
            (write("done", ""),), (shell("test -f done && echo there"),)],
        "bisects": rounds(
            shell(f"test {number} -lt 37 && echo good || echo bad")
            for number in (50, 25, 37, 31, 34, 36, 35)
        ),
        "searches and reads": [
            HELLO,
            *(
                step
                for name in ("a.txt", "b.txt", "c.txt")
                for step in ((search("h", path=name),), (read(name),), (shell(f"wc {name}"),))
            ),
        ],
        "writes a book": [
            (write(f"chapter {number}.md", f"# Chapter {number}\n"),) for number in range(25)
        ],
        "rewrites one page": [(write("page.md", f"draft {number}\n"),) for number in range(20)],
        "remembers and checks": [
            step
            for fact in ("tea", "cats", "rain", "chess", "trains", "books")
            for step in ((remember(f"Ann likes {fact}."),), (recall(fact),))
        ],
        "tries other ways": rounds(
            shell(command)
            for command in ("foo", "command -v foo", "ls /opt", "foo --version", "sh foo", "./foo")
        ),
        "reads everything twice": [
            HELLO, *rounds(read(name) for name in ("a.txt", "b.txt", "c.txt") * 2)
        ],
        "looks for eight words that are not there": [
            HELLO, *rounds(search(word, names="*.txt") for word in ["k", "l", "q", "v", "w", "x", "y", "z"])
        ],
        "looks for ten words that are not there": [
            HELLO, *rounds(search(word, path=".") for word in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"])
        ],
        "removes many notes": [
            [remember(f"fact {number}") for number in range(10)],
            *rounds(("forget_note", {"number": number}) for number in range(1, 11)),
        ],
        "sets many keys alike": [
            (shell(f"printf 'colour{number}=red\\n' >> conf"),) for number in range(25)
        ],
    },
)  # fmt: skip
FRESH = Scripts(
    looping={
        "counts the same lines": loop((shell("wc -l a.txt"),), after=[HELLO]),
        "four things in turn": loop(
            (read("a.txt"),), (shell("ls"),), (search("h"),), (("list_files", {"path": "."}),),
            after=[HELLO],
        ),
        "asks for a longer time-out": [
            (("shell", {"command": "false", "timeout_s": 1 + number}),) for number in range(LENGTH)
        ],
        "edits to and fro": loop(
            (edit("a.txt", "hello", "bye"),), (edit("a.txt", "bye", "hello"),), after=[HELLO]
        ),
        "reads a directory as a file": loop((read("."),)),
        "searches a name that changes its case": loop(
            (search("Needle"),), (search("needle"),), (search("NEEDLE"),), after=[HELLO]
        ),
        "loads what is not there": loop((("load_tools", {"groups": ["browser"]}),)),
        "reads a result that was never given": loop(
            (("read_result", {"id": "zc-receipt-1700000000-aaaa"}),)
        ),
        "forgets and remembers": loop(
            (remember("Ann likes tea."),), (("forget_note", {"number": 99}),)
        ),
        "three at once, over and over": loop(
            (read("a.txt"), read("b.txt"), shell("pwd")), after=[HELLO]
        ),
    },
    honest={
        "halves a list": rounds(shell(f"seq {n} | wc -l") for n in (64, 32, 16, 8, 4, 2, 1)),
        "adds up a column": rounds(shell(f"echo $(({n} * {n}))") for n in range(1, 16)),
        "writes, tests and mends three files": [
            step
            for name in ("a", "b", "c")
            for step in (
                (write(f"{name}.sh", "exit 1\n"),),
                (shell(f"sh {name}.sh"),),
                (edit(f"{name}.sh", "exit 1", "exit 0"),),
                (shell(f"sh {name}.sh"),),
            )
        ],
        "checks that nothing is left": rounds(shell(f"test ! -e {name}") for name in "abcdefgh"),
        "makes twelve folders": rounds(shell(f"mkdir -p d{n}") for n in range(12)),
        "reads the end of a log that grows": [
            step
            for number in range(9)
            for step in ((shell(f"echo line {number} >> log"),), (shell("tail -n 1 log"),))
        ],
        "looks into five files for two words": [
            HELLO,
            *rounds(
                search(word, path=f"{name}.txt") for name in ("a", "b", "c") for word in ("h", "m")
            ),
        ],
        "pages to the end and back": [
            (write("poem.txt", POEM),),
            *rounds(
                read("poem.txt", first_line=first, max_lines=100)
                for first in (*range(1, 1001, 100), *range(901, 0, -100))
            ),
        ],
        "sets ten marks in one file": [
            (write("list.md", "".join(f"[ ] {n:02}\n" for n in range(10))),),
            *rounds(edit("list.md", f"[ ] {n:02}", f"[x] {n:02}") for n in range(10)),
        ],
        "tries five doors": rounds(shell(f"cat /nonexistent/{n}") for n in range(5)),
    },
)  # fmt: skip
LATER = Scripts(
    looping={
        "waits ever longer": [
            (("shell", {"command": "test -f ready && cat ready", "timeout_s": 5 * number}),)
            for number in range(1, LENGTH + 1)
        ],
        "two searches and a listing": loop(
            (search("TODO"),), (search("FIXME"),), (("list_files", {"path": "."}),), after=[HELLO]
        ),
        "always the same window of a file": loop(
            (read("poem.txt", first_line=900, max_lines=20),), after=[(write("poem.txt", POEM),)]
        ),
        "two pages to and fro": loop(
            (read("poem.txt", first_line=1, max_lines=100),),
            (read("poem.txt", first_line=101, max_lines=100),),
            after=[(write("poem.txt", POEM),)],
        ),
        "runs the tests and reads the test": loop(
            (shell("python3 t.py"),), (read("t.py"),), after=[(write("t.py", PROGRAM),)]
        ),
        "seven commands in turn": loop(
            *rounds(shell(step) for step in ("pwd", "id -u", "ls", "uname", "true", "false", "echo x"))
        ),
        "writes what it wrote, under a comment": loop(
            (write("out.txt", "result\n"),), (shell("cat out.txt"),), (read("out.txt"),)
        ),
        "a path with dots": loop(
            (read("./a.txt"),), (read("a.txt"),), (read("././a.txt"),), after=[HELLO]
        ),
        "recalls with another number of hits": [
            (recall("holiday plans", limit=1 + number % 9),) for number in range(LENGTH)
        ],
        "searches for a name with a growing number": [
            (search(f"invoice-{number:04}", path="."),) for number in range(LENGTH)
        ],
    },
    honest={
        "checks ten files before and after": [
            [write(f"{n}.txt", f"text {n}\n") for n in range(10)],
            *rounds(read(f"{n}.txt") for n in range(10)),
            (shell("touch stamp"),),
            *rounds(read(f"{n}.txt") for n in range(10)),
        ],
        "reads a long file and checks its first half": [
            (write("poem.txt", POEM),),
            *rounds(read("poem.txt", first_line=f, max_lines=50) for f in range(1, 1001, 50)),
            *rounds(read("poem.txt", first_line=f, max_lines=50) for f in range(1, 501, 50)),
        ],
        "builds with ever more time until it is done": [
            (write("n", ""),),
            *(
                (("shell", {"command": "echo x >> n; test $(wc -l < n) -gt 5", "timeout_s": t}),)
                for t in (1, 2, 4, 8, 16, 32)
            ),
        ],
        "greps six words in three files": [
            HELLO,
            *rounds(
                search(word, path=f"{name}.txt")
                for word in ("hello", "bye", "hm", "x", "y", "z")
                for name in ("a", "b", "c")
            ),
        ],
        "renames, lists and looks": [
            step
            for number in range(9)
            for step in ((shell(f"touch old{number}; mv old{number} new{number}"),), (shell("ls"),))
        ],
        "deletes what is already gone": rounds(shell(f"rm -f cache/{n}.tmp") for n in range(20)),
        "fills a table row by row": [
            (write("table.csv", "n,square\n"),),
            *rounds(shell(f"echo {n},{n * n} >> table.csv") for n in range(15)),
            (read("table.csv"),),
        ],
        "asks its notes about nine things": rounds(
            recall(query)
            for query in ("tea", "cat", "job", "car", "food", "music", "sport", "home", "pets")
        ),
        "edits a setting until it fits": [
            (write("conf", "size=1\n"),),
            *(
                step
                for n in range(1, 9)
                for step in (
                    (shell("grep -q size=9 conf || echo too small"),),
                    (edit("conf", f"size={n}", f"size={n + 1}"),),
                )
            ),
            (shell("grep -q size=9 conf || echo too small"),),
        ],
        "looks at the clock thrice and works between": [
            step
            for number in range(3)
            for step in (
                (shell("date +%Y"),),
                (write(f"part {number}.md", "words\n"),),
                (shell("ls | wc -l"),),
            )
        ],
    },
)  # fmt: skip
"""Written after the last change of the rule, and played once: one more sample."""
NOISY = Scripts(
    looping={
        "runs tests whose output is timed": loop(
            (shell("python3 t.py 2>&1 | tail -n 1; echo took $(date +%N) ns"),),
            after=[(write("t.py", PROGRAM),)],
        ),
        "runs timed tests and reads them": loop(
            (shell("python3 t.py 2>&1 | tail -n 1; echo took $(date +%N) ns"),),
            (read("t.py"),),
            after=[(write("t.py", PROGRAM),)],
        ),
        "starts a process that dies": loop((shell("echo started as $$; false"),)),
        "makes a name and forgets it": loop(
            (shell("cat /proc/sys/kernel/random/uuid"),)
        ),
        "looks who else is there": loop(
            (shell("ls -l --time-style=full-iso /proc/self/stat"),), (shell("id -un"),)
        ),
        "asks how long the machine is up": loop((shell("cat /proc/uptime"),)),
        "edits what is not there in new ways": [
            HELLO, *rounds(edit("a.txt", f"goodbye {number}", "farewell") for number in range(LENGTH))
        ],
        "plans and plans": [
            (write("plan.md", f"The plan, as of step {number}.\n"),) for number in range(LENGTH)
        ],
        "writes a note of each look": [
            HELLO,
            *(
                step
                for number in range(22)
                for step in ((shell("wc -c a.txt"),), (remember(f"looked at it, time {number}"),))
            ),
        ],
        "two commands that fail, with a clock": loop(
            (shell("date +%T.%N; cat nothing-here"),), (shell("date +%T.%N; ls nothing-there"),)
        ),
    },
    honest={
        "waits for a job by its percentage": rounds(
            shell("echo >> p; echo $(( $(wc -l < p) * 5 )) %") for _ in range(20)
        ),
        "watches a job and its log": [
            step
            for _ in range(8)
            for step in (
                (shell("echo RUNNING"),),
                (shell("echo x >> q; echo step $(wc -l < q) of 8"),),
            )
        ],
        "runs timed tests after each change": [
            (write("t.py", PROGRAM),),
            *(
                step
                for number in range(8)
                for step in (
                    (edit("t.py", f"n = {number}\n", f"n = {number + 1}\n"),),
                    (shell("python3 t.py; echo took $(date +%N) ns"),),
                )
            ),
        ],
        "measures ten times": rounds(shell("date +%s%N") for _ in range(10)),
        "throws dice": rounds(shell("echo $(( $(date +%N) % 6 + 1 ))") for _ in range(12)),
        "takes jobs from a queue": [
            (write("queue", "".join(f"job {number}\n" for number in range(15))),),
            *rounds(shell("head -n 1 queue; sed -i 1d queue") for _ in range(15)),
        ],
        "reads its plan before each step": [
            (write("plan.md", POEM[:200]),),
            *(
                step
                for number in range(12)
                for step in ((read("plan.md"),), (write(f"step{number}.txt", f"{number}\n"),))
            ),
        ],
        "counts up a version": [
            step
            for number in range(9)
            for step in ((write("VERSION", f"1.{number}\n"),), (read("VERSION"),))
        ],
        "retries a flaky command": [
            *rounds(shell("echo x >> r; echo try $(wc -l < r); test $(wc -l < r) -ge 6") for _ in range(6)),
            (read("r"),),
        ],
        "makes five passwords and keeps them": [
            step
            for number in range(5)
            for step in (
                (shell("cat /proc/sys/kernel/random/uuid"),),
                (shell(f"echo {number} >> kept"),),
            )
        ],
    },
)  # fmt: skip
"""Written before results that differ only in numbers counted as near-equal: ten were missed before that
change, three after it. Since then repeated failures are near-equal whatever the error says."""
