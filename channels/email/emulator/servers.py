"""Dovecot and postfix, started once for each process, in a directory of their own.

They are real servers because people's mail goes through them; a fake would not be as quirky. Starting
both takes two seconds, so tests share them, and each test uses its own mailboxes: every name at
`DOMAIN` is a mailbox, except those that begin with `gone`, and the password is the same for all.
Nothing in /etc is read or changed, and no mail leaves: mail for another domain bounces at once.
"""

import asyncio
import atexit
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from functools import cache
from itertools import count
from pathlib import Path
from threading import Event

from channels._remote.emulator.http import reserve_port
from zeroclaw import ConfigError

DOMAIN = "zero.test"
PASSWORD = "of-every-mailbox"  # noqa: S105  in tests; `zeroclaw try` makes another
AUTHSERV_ID = "mx.zero.test"
VERDICT = f"{AUTHSERV_ID}; dmarc=pass header.from={DOMAIN}"
START_S = 60.0  # only where something hangs; a loaded machine takes its time
_VALIDITY = re.compile(r"3 V(\d+) ")
_NUMBERED = re.compile(r"(?m)^(\d+).* :([^:\n]+)")
_SESSION = re.compile(r"(?m)^\S+ +imap +(\d+)")
_QUEUE = re.compile(r"\bid ([0-9A-Za-z]{10,})\b")

DOVECOT = """
base_dir = {home}/run
state_dir = {home}/run
log_path = {home}/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
default_internal_user = nobody
default_internal_group = nogroup
default_login_user = nobody
first_valid_uid = 1
ssl = yes
ssl_cert = <{home}/cert.pem
ssl_key = <{home}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login xoauth2
auth_failure_delay = 0
mail_location = maildir:{home}/mail/%u
mail_max_userip_connections = 100
mail_fsync = never
imap_idle_notify_interval = 2 secs
passdb {{
  driver = static
  mechanisms = plain login
  args = password={password}
}}
passdb {{
  driver = oauth2
  mechanisms = xoauth2
  args = {home}/oauth2.conf
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={home}/mail/%u allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = 0
  }}
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
service lmtp {{
  unix_listener {home}/lmtp {{
    mode = 0600
    user = postfix
  }}
}}
service auth {{
  chroot =
  inet_listener sasl {{
    address = 127.0.0.1
    port = {sasl}
  }}
}}
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service stats {{
  chroot =
}}
"""
OAUTH2 = """
introspection_mode = post
introspection_url = http://127.0.0.1:{tokens}/introspect
active_attribute = active
active_value = true
username_attribute = username
"""
MAIN = """
compatibility_level = 3.6
queue_directory = {home}/spool
data_directory = {home}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = {domain}
mydestination =
mynetworks = 127.0.0.0/8
enable_long_queue_ids = yes
virtual_mailbox_domains = {domain}
virtual_transport = lmtp:unix:{home}/lmtp
default_transport = error:no outside mail in tests
relay_transport = error:no outside mail in tests
smtpd_tls_cert_file = {home}/cert.pem
smtpd_tls_key_file = {home}/key.pem
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = inet:127.0.0.1:{sasl}
smtpd_recipient_restrictions = check_recipient_access regexp:{home}/gone,
  permit_sasl_authenticated, reject
smtpd_client_connection_rate_limit = 0
message_size_limit = 30000000
maillog_file = {home}/postfix.log
maillog_file_prefixes = {home}
biff = no
alias_maps =
"""
MASTER = """
127.0.0.1:{submission} inet n - n - - smtpd
  -o smtpd_tls_security_level=encrypt
  -o smtpd_tls_auth_only=yes
127.0.0.1:{mx} inet n - n - - smtpd
  -o smtpd_recipient_restrictions=permit_auth_destination,reject
  -o smtpd_sasl_auth_enable=no
  -o smtpd_milters=inet:127.0.0.1:{milter}
  -o milter_default_action=tempfail
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
tlsmgr unix - - n 1000? 1 tlsmgr
lmtp unix - - n - - lmtp
error unix - - n - - error
retry unix - - n - - error
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""
# Reads the servers' process ids until the pipe is closed, also by a `kill -9` of this process.
# Postfix's main process leads its own session, and outlives its parent.
GUARD = """
while read -r pid; do pids="$pids $pid"; done
postfix -c "$0/etc" stop >/dev/null 2>&1
for pid in $pids; do
    kill "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
done
rm -rf "$0"
"""


@dataclass(kw_only=True)
class Servers:
    """Both servers, running.

    Attributes:
        home: The directory of all their files.
        imaps: The port for reading mailboxes, with TLS.
        submission: The port for sending mail, with STARTTLS and a login.
        mx: The port for mail from outside; such mail gets the headers that the milter adds.
        milter: The port where postfix asks the milter; see `tests.emulators.mail.milter`.
        tokens: The port where dovecot checks access tokens; see `tests.emulators.mail.tokens`.
    """

    home: Path
    imaps: int
    submission: int
    sasl: int
    mx: int
    milter: int
    tokens: int
    password: str = PASSWORD
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    guard: subprocess.Popen[bytes] | None = None
    numbers: "count[int]" = field(default_factory=count)

    @property
    def ca_file(self) -> str:
        """The certificate of both servers, to trust."""
        return str(self.home / "cert.pem")

    def new_address(self, name: str) -> str:
        """Return an address that was not used before."""
        return f"{name}-{next(self.numbers)}@{DOMAIN}"

    async def deliver(self, to: str, mail: bytes, *, sender: str = "") -> None:
        """Deliver a mail unchanged, with any headers, to a mailbox; returns when it has a UID.

        Uses a socket that only this user and postfix can open, since its client sets the sender.
        """
        reader, writer = await asyncio.open_unix_connection(self.home / "lmtp")
        lines = (f"LHLO {DOMAIN}", f"MAIL FROM:<{sender}>", f"RCPT TO:<{to}>", "DATA")
        dotted = re.sub(rb"(?m)^\.", b"..", re.sub(rb"\r?\n", b"\r\n", mail))
        try:
            await _answer(reader)
            for line in lines:
                writer.write(f"{line}\r\n".encode())
                await _answer(reader)
            writer.write(dotted + b"\r\n.\r\n")
            await _answer(reader)
        finally:
            writer.close()
        await writer.wait_closed()
        await asyncio.to_thread(self._assign_uids, to)

    def _assign_uids(self, address: str) -> None:
        """Let dovecot assign UIDs to the new mails of a mailbox.

        It postpones that if the list is in use, and by then another mail may have arrived and got its
        UID first (2.3, a maildir, read 2026-11): with one concurrent reader, 12 of 600 did.
        """
        uids = self._uid_list(address)
        if not all(_name(file) in uids for file in self._files(address)):
            command = ["doveadm", "-c", f"{self.home}/dovecot.conf", "mailbox", "status"]
            subprocess.run(
                [*command, "-u", address, "uidnext", "INBOX"], check=False, capture_output=True
            )

    async def wait_seen(self, address: str, mails: int) -> None:
        """Wait until a number of mails of a mailbox are marked as seen."""

        def are_seen() -> bool:
            return len([file for file in self._files(address) if "S" in _flags(file)]) >= mails

        await asyncio.to_thread(_poll, are_seen)

    async def wait_delivered(self) -> None:
        """Wait until postfix has delivered every mail in its queues."""
        await asyncio.to_thread(_poll, self._is_delivered)

    def sessions(self, address: str) -> Sequence[int]:
        """Ask dovecot for the ids of its processes that have a mailbox open."""
        command = ["doveadm", "-c", f"{self.home}/dovecot.conf", "who", "-1", address]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        return [int(pid) for pid in _SESSION.findall(result.stdout)]

    async def count(self, address: str) -> int:
        """Return how many mails a mailbox has received so far."""
        return len(await asyncio.to_thread(self._files, address))

    async def mails(self, address: str) -> list[EmailMessage]:
        """Return the mails of a mailbox, in the order in which postfix received them."""
        await self.wait_delivered()

        def read() -> list[EmailMessage]:
            mails = (
                BytesParser(policy=default).parsebytes(file.read_bytes())
                for file in self._files(address)
            )
            return sorted((mail for mail in mails), key=_queue_id)

        return await asyncio.to_thread(read)

    async def renumber(self, address: str, like: str = "") -> None:
        """Give a mailbox the next UIDVALIDITY, or another mailbox's, as if it were restored.

        Dovecot would use the current second, which may be the same again.
        """

        def forget() -> None:
            home, validity = self.home / "mail" / address, self.validity(like or address)
            for file in home.glob("dovecot*"):
                file.unlink()
            replacement = home / "anew"
            replacement.write_text(f"3 V{validity + (not like)} N1\n")
            shutil.chown(replacement, "nobody")
            replacement.rename(home / "dovecot-uidlist")

        await asyncio.to_thread(forget)

    def validity(self, address: str) -> int:
        """Return the UIDVALIDITY of a mailbox that has received a mail."""
        match = _VALIDITY.match((self.home / "mail" / address / "dovecot-uidlist").read_text())
        return int(match[1]) if match else 0

    def uids(self, address: str) -> Mapping[str, int]:
        """Return the UIDs of a mailbox by Message-ID; the lower one if a mail arrived twice."""
        uids = self._uid_list(address)
        parser = BytesParser(policy=default)
        lowest: dict[str, int] = {}
        for file in self._files(address):
            message_id = str(parser.parsebytes(file.read_bytes(), headersonly=True)["message-id"])
            uid = uids[_name(file)]
            lowest[message_id] = min(uid, lowest.get(message_id, uid))
        return lowest

    def _uid_list(self, address: str) -> Mapping[str, int]:
        file = self.home / "mail" / address / "dovecot-uidlist"
        rows = _NUMBERED.findall(file.read_text()) if file.exists() else ()
        return {name: int(uid) for uid, name in rows}

    async def cut(self, address: str) -> None:
        """End every session of one mailbox, as when a server restarts."""
        await asyncio.to_thread(
            subprocess.run,
            ["doveadm", "-c", f"{self.home}/dovecot.conf", "kick", address],
            check=False,
            capture_output=True,
        )

    def _files(self, address: str) -> list[Path]:
        home = self.home / "mail" / address
        return [
            file
            for part in ("new", "cur")
            if (home / part).is_dir()
            for file in (home / part).iterdir()
        ]

    def _is_delivered(self) -> bool:
        queues = (
            self.home / "spool" / name for name in ("maildrop", "incoming", "active", "deferred")
        )
        return not any(file.is_file() for queue in queues for file in queue.rglob("*"))

    def start(self) -> None:
        """Start both servers; returns when they answer.

        Raises:
            ConfigError: One of them ended.
        """
        names = {**vars(self), "domain": DOMAIN}
        etc = self.home / "etc"
        for name in ("run", "mail", "spool", "data", "etc"):
            (self.home / name).mkdir()
            (self.home / name).chmod(0o755)  # other users enter them, whatever our umask is
        self.home.chmod(0o755)
        shutil.chown(self.home / "mail", "nobody")
        shutil.chown(self.home / "data", "postfix")
        certify(self.home)
        (self.home / "dovecot.conf").touch(mode=0o600)  # it contains the password
        (self.home / "dovecot.conf").write_text(DOVECOT.format(**names))
        (self.home / "oauth2.conf").write_text(OAUTH2.format(**names))
        (etc / "main.cf").write_text(MAIN.format(**names))
        (etc / "master.cf").write_text(MASTER.format(**names))
        (self.home / "gone").write_text("/^gone/ 550 5.1.1 there is no such mailbox\n")
        atexit.register(self.stop)
        guarding = ("sh", "-c", GUARD, str(self.home))
        self.guard = subprocess.Popen(
            guarding, stdin=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        # One after the other: `stop` does not reach a postfix that is still starting.
        for command, ready in (
            (("dovecot", "-F", "-c", str(self.home / "dovecot.conf")), "starting up"),
            (("postfix", "-c", str(etc), "start-fg"), "daemon started"),
        ):
            log, file = (self.home / f"{command[0]}.{kind}" for kind in ("log", "out"))
            with file.open("wb") as stream:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, umask=0o022
                )
            self.processes.append(process)
            if self.guard.stdin is not None:
                self.guard.stdin.write(b"%d\n" % process.pid)
            # A port is no sign that they run: at one that was in use, another program answers.
            _poll(lambda: process.poll() is not None or (log.exists() and ready in log.read_text()))  # noqa: B023
            if process.poll() is not None:
                output = " ".join(file.read_text().split())[:200]
                raise ConfigError((f"try: {command[0]} does not start: {output}",))

    def stop(self) -> None:
        """Stop both servers and remove their files; safe twice."""
        if self.guard is None:
            shutil.rmtree(self.home, ignore_errors=True)
            return
        if self.guard.stdin is not None:
            self.guard.stdin.close()
        for process in (*self.processes, self.guard):
            process.wait()


@cache
def servers() -> Servers:
    """Return the servers of this process, which run until it ends; blocks while they start."""
    return started(PASSWORD)


def started(password: str) -> Servers:
    """Return new servers, with one password for every mailbox; blocks while they start.

    Raises:
        ConfigError: The servers run as other users, who may not enter the temporary directory; or one
            of them ended.
    """
    directory = Path(tempfile.gettempdir())
    if not all(parent.stat().st_mode & stat.S_IXOTH for parent in (directory, *directory.parents)):
        fault = f"TMPDIR: `{directory}` is closed to the users of dovecot and postfix; name another"
        raise ConfigError((fault,))
    servers = Servers(
        home=Path(tempfile.mkdtemp(prefix="zc-mail-", dir=directory)),
        imaps=reserve_port(),
        submission=reserve_port(),
        sasl=reserve_port(),
        mx=reserve_port(),
        milter=reserve_port(),
        tokens=reserve_port(),
        password=password,
    )
    with ExitStack() as undo:
        undo.callback(servers.stop)
        servers.start()
        undo.pop_all()
    return servers


def certify(home: Path) -> None:
    """Write `cert.pem` and `key.pem` for localhost."""
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(home / "key.pem"), "-out", str(home / "cert.pem")),
        ],
        check=True,
        capture_output=True,
    )


def _poll(is_true: Callable[[], bool]) -> None:
    """Poll until it is true, since the servers announce nothing; runs in a thread."""
    ticker = Event()
    for _ in range(int(START_S / 0.005)):
        if is_true():
            return
        ticker.wait(0.005)
    message = "the mail servers took too long"
    raise AssertionError(message)


async def _answer(reader: asyncio.StreamReader) -> None:
    line = b"-" * 4
    while line[3:4] == b"-":
        line = await reader.readline()
    if line[:1] not in {b"2", b"3"}:
        message = f"the mail server refused: {line!r}"
        raise AssertionError(message)


def _name(file: Path) -> str:
    return file.name.partition(":")[0]


def _flags(file: Path) -> str:
    return file.name.partition(":2,")[2]


def _queue_id(mail: EmailMessage) -> str:
    """Return postfix's id of a mail; ids sort by the time at which it received them."""
    ids = [match[1] for hop in mail.get_all("received", []) if (match := _QUEUE.search(str(hop)))]
    return ids[-1] if ids else ""
