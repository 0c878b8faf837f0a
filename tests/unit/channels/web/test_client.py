"""The page's outbox and uploads, run by Node against servers that are not ours."""

import json
import subprocess

from tests.unit.channels.web.test_markdown import NODE, PAGE

STREAM = PAGE.with_name("stream.js")
CLIENT = PAGE.parents[2] / "channels/web/page/client.js"
RUN = """
const [client, stream] = process.argv.slice(1);
const inline = (text) => "data:text/javascript," + encodeURIComponent(text);
globalThis.location = { pathname: "/" };
globalThis.sessionStorage = { getItem: () => null, setItem() {}, removeItem() {} };
AbortSignal.timeout = () => new AbortController().signal;  // browsers take fractions
globalThis.fetch = async () => new Response("<h1>Log in</h1>", { headers: { "content-type": "text/html" } });
const { Outbox, upload } = await import(inline(client.replace('"./stream.js"', JSON.stringify(inline(stream)))));
"""
ADD_MESSAGE = """
const told = [];
const tell = (what) => () => told.push(what);
const outbox = new Outbox({
  acknowledged: tell("acknowledged"), refused: tell("refused"),
  loggedOut: tell("loggedOut"),
  waiting: () => { told.push("waiting"); console.log(JSON.stringify([told, outbox.messages.length])); process.exit(0); },
});
outbox.add("hello");
"""

REFUSE_AFTER_LOGOUT = """
const told = [];
const tell = (what) => () => told.push(what);
const outbox = new Outbox({
  acknowledged: tell("acknowledged"), refused: tell("refused"),
  loggedOut: tell("loggedOut"), waiting: tell("waiting"),
});
globalThis.fetch = async () => {
  outbox.messages = [];
  return Response.json({ error: "too long" }, { status: 413 });
};
outbox.add("a confession");
await new Promise((resolve) => setTimeout(resolve));
console.log(JSON.stringify([told, outbox.isRunning]));
"""

UPLOAD = """
globalThis.setTimeout = (wake) => queueMicrotask(wake);
const said = await upload("1", { size: 5 }).then(() => "taken", (error) => error.message);
console.log(JSON.stringify(said));
"""

FULL = """
const error = "too many files wait already; send what you have, and try again";
globalThis.fetch = async () => Response.json({ error }, { status: 503 });
"""


def run(script: str) -> object:
    files = (CLIENT, STREAM)
    sources = [file.read_text(encoding="utf-8") for file in files]
    command = [NODE, "--input-type=module", "-e", RUN + script, *sources]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_a_message_stays_until_the_daemon_itself_has_taken_it() -> None:
    """A portal or a login page before it answers 200 to everything (P1)."""
    assert run(ADD_MESSAGE) == [["waiting"], 1]


def test_a_message_that_is_refused_while_the_person_logs_out_is_not_put_back() -> None:
    """The page would store its text for the next person in this tab (P8)."""
    assert run(REFUSE_AFTER_LOGOUT) == [[], False]


def test_a_file_is_uploaded_once_the_daemon_itself_has_taken_it() -> None:
    """Else its message would name a file that is not there, and be refused (P1)."""
    assert run(UPLOAD) == "no connection"


def test_a_file_that_the_daemon_has_no_room_for_says_so() -> None:
    """After the last try the page said that there is no connection (P10)."""
    reason = "too many files wait already; send what you have, and try again"
    assert run(FULL + UPLOAD) == reason
