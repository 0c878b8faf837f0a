"""Every sentence that the bot itself says to people in chats, in each language, and nothing else.

Each sentence is here once, with all its languages together; other code decides who says it and
when. Texts for the model, command line output, logs and errors are not here: they are English.

The German is plain and short, and uses `du`. A text shown in a group uses people's names instead.
Words that people type (`/stop`, `CODE`) and names are not translated.
"""

from zeroclaw.text.language import Sentence

# --- how much people may write -------------------------------------------------------------------

WRITES_TOO_FAST = Sentence(
    en="That was a lot at once: I take {rate} a minute from one person. I did not take this message, and I take no others for {wait}. After that, write again.",
    de="Das war viel auf einmal; ich nehme höchstens {rate} pro Minute von einer Person an. Diese Nachricht habe ich nicht angenommen, und in den nächsten {wait} nehme ich keine an. Danach geht es weiter.",
)
CHAT_TOO_FAST = Sentence(
    en="This chat writes faster than I can answer: I take {rate} a minute here. I did not take this message, and I take no others for {wait}.",
    de="In diesem Chat wird schneller geschrieben, als ich antworten kann: ich nehme hier höchstens {rate} pro Minute an. Diese Nachricht habe ich nicht angenommen, und in den nächsten {wait} nehme ich keine an.",
)
DAY_IS_FULL = Sentence(
    en="For today that is all that I can take from one person, {most} a day. I did not take this message. The day ends at 00:00 UTC, in {wait}; after that, write again.",
    de="Für heute ist das alles, was ich von einer Person annehmen kann, höchstens {most} am Tag. Diese Nachricht habe ich nicht angenommen. Der Tag endet um 00:00 UTC, in {wait}; schreib danach noch einmal.",
)

TOO_OLD = Sentence(
    en="What was written here more than {age} ago reached me only now, and I leave it unanswered. Write it again if it still matters.",
    de="Was hier vor mehr als {age} geschrieben wurde, hat mich erst jetzt erreicht; ich beantworte es nicht mehr. Schreib es noch einmal, wenn es noch wichtig ist.",
)

STATUS_LIMITS = Sentence(
    en="\n- {count} messages over a limit were not taken",
    de="\n- {count} Nachrichten über einem Limit wurden nicht angenommen",
    one=Sentence(
        en="\n- a message over a limit was not taken",
        de="\n- eine Nachricht über einem Limit wurde nicht angenommen",
    ),
)

# --- the language itself -------------------------------------------------------------------------

LANGUAGE_CHOSEN = Sentence(
    en="From now on I speak {name} with you.", de="Ab jetzt spreche ich {name} mit dir."
)
LANGUAGES_SPOKEN = Sentence(
    en="My own sentences can be in {choices}. Now they are in {name}.",
    de="Meine eigenen Sätze gibt es auf {choices}. Im Moment auf {name}.",
)


# --- people who are named by their rights --------------------------------------------------------

AN_OPERATOR = Sentence(en="an operator", de="ein Operator")
A_ROLE = Sentence(en="a {role}", de="jemand mit der Rolle {role}")
AN_ROLE = Sentence(en="an {role}", de="jemand mit der Rolle {role}")
OR = Sentence(en=" or ", de=" oder ")
NOBODY = Sentence(en="nobody", de="niemand")
BY = Sentence(en=" by {who}", de=" von {who}")

# For actors without a name; the German follows `von`.

BY_CONSOLE = Sentence(en="the console", de="der Konsole")
BY_OPERATOR_HERE = Sentence(en="the operator on this machine", de="dem Operator an diesem Rechner")
BY_PRINTED_CODE = Sentence(
    en="the code that the daemon printed", de="dem Code, den der Daemon angezeigt hat"
)
BY_CONFIGURATION = Sentence(en="the configuration", de="der Konfiguration")

# --- how a turn ends: notes below the text, in italics, with a full stop --------------------------

STOPPED = Sentence(en="stopped{by}", de="abgebrochen{by}")
STOPPED_FOR_NEW = Sentence(
    en="stopped: a new conversation was begun{by}",
    de="abgebrochen{by}: ein neues Gespräch hat begonnen",
)
STOPPED_TO_FORGET = Sentence(
    en="stopped: what was said here is being removed{by}",
    de="abgebrochen{by}: was hier gesagt wurde, wird gelöscht",
)
STOPPED_BY_HALT = Sentence(
    en="stopped: everything was halted{by}", de="abgebrochen{by}: alles ist angehalten"
)
STOPPED_AS_REVOKED = Sentence(
    en="stopped{by}: you may no longer talk to me",
    de="abgebrochen{by}: du darfst nicht mehr mit mir sprechen",
)
INTERRUPTED = Sentence(
    en="interrupted by a newer message", de="unterbrochen durch eine neuere Nachricht"
)
INTERRUPTED_BY = Sentence(
    en="interrupted by a newer message of {who}",
    de="unterbrochen durch eine neuere Nachricht von {who}",
)
MAX_ROUNDS = Sentence(
    en="stopped after {rounds} rounds of tool calls, the limit of one turn; earlier tool calls may already have completed successfully",
    de="nach {rounds} Runden mit Werkzeugaufrufen beendet, mehr sind für eine Antwort nicht erlaubt; was bis dahin aufgerufen wurde, kann schon etwas bewirkt haben",
)
LOOP_DETECTED = Sentence(
    en="stopped: I called {tools} again and again and learned nothing new; send `/retry`, or tell me more, to go on",
    de="beendet: Ich habe immer wieder {tools} aufgerufen und nichts Neues erfahren; mit `/retry` oder einem weiteren Hinweis mache ich weiter",
)
MAX_USED = Sentence(
    en="stopped at {used}, the limit of one turn is {limit}; earlier tool calls may already have completed successfully",
    de="bei {used} beendet, für eine Antwort sind {limit} erlaubt; was bis dahin aufgerufen wurde, kann schon etwas bewirkt haben",
)
TURN_IS_NEAR = Sentence(
    en="{percent} % of the budget for one answer, {limit}, is used; I stop there",
    de="{percent} % von dem, was ich für eine Antwort verbrauchen darf, {limit}, ist verbraucht; dort höre ich auf",
)
ROUNDS = Sentence(en="{count} rounds of tool calls", de="{count} Runden mit Werkzeugaufrufen")
TOKENS = Sentence(en="{count} tokens", de="{count} Tokens")
TOKENS_PRICED = Sentence(en="{tokens} for {money}", de="{tokens} für {money}")
TOKENS_PARTLY_PRICED = Sentence(
    en="{tokens} for {money} (no price is known for {unpriced})",
    de="{tokens} für {money} (ohne bekannten Preis: {unpriced})",
)
DAY_IS_SPENT = Sentence(
    en="the daily budget for everybody, {limit}, is used up; I go on at 00:00 UTC, in {wait}",
    de="alles, was ich an einem Tag verbrauchen darf, {limit}, ist verbraucht; um 00:00 UTC, in {wait}, geht es weiter",
)
SHARE_IS_SPENT = Sentence(
    en="your daily budget, {limit}, is used up; I go on at 00:00 UTC, in {wait}",
    de="alles, was du an einem Tag verbrauchen darfst, {limit}, ist verbraucht; um 00:00 UTC, in {wait}, geht es weiter",
)
SHARE_IS_NEAR = Sentence(
    en="{percent} % of your daily budget, {limit}, is used",
    de="{percent} % von dem, was du an einem Tag verbrauchen darfst, {limit}, ist verbraucht",
)
CONVERSATION_IS_SPENT = Sentence(
    en="the budget of this conversation, {limit}, is used up; `/new` begins another",
    de="alles, was dieses Gespräch verbrauchen darf, {limit}, ist verbraucht; `/new` beginnt ein neues",
)
CONVERSATION_IS_NEAR = Sentence(
    en="{percent} % of the budget of this conversation, {limit}, is used",
    de="{percent} % von dem, was dieses Gespräch verbrauchen darf, {limit}, ist verbraucht",
)

# The same for operators.

DAY_IS_AT = Sentence(
    en="{percent} % of what may be used in a day, {limit}, is used (`[budget]`); the day ends at 00:00 UTC.",
    de="{percent} % von dem, was an einem Tag verbraucht werden darf, {limit}, ist verbraucht (`[budget]`); der Tag endet um 00:00 UTC.",
)
SHARE_OF_IS_SPENT = Sentence(
    en="{who} has used up what one person may use in a day, {limit} (`[budget]`).",
    de="{who} hat verbraucht, was eine Person an einem Tag verbrauchen darf: {limit} (`[budget]`).",
)
CONVERSATION_OF_IS_SPENT = Sentence(
    en="A conversation of {who} has used up what one may use, {limit} (`[budget]`).",
    de="Ein Gespräch von {who} hat verbraucht, was eines verbrauchen darf: {limit} (`[budget]`).",
)

ANSWER_CUT_TWICE = Sentence(
    en="the model's answer broke off or was empty twice; send `/retry` to ask again",
    de="die Antwort des Modells brach zweimal ab oder war leer; mit `/retry` wird es noch einmal gefragt",
)
CUT_WITHOUT_SUMMARY = Sentence(
    en="_This conversation is longer than the model can read at once, so I answer without a part of it, the oldest first. Nothing of it is deleted._",
    de="_Dieses Gespräch ist länger, als das Modell auf einmal lesen kann; ich antworte ohne einen Teil davon, das Älteste zuerst. Gelöscht wird nichts._",
)
TOO_LONG = Sentence(
    en="this is more than the model can read at once; send less of it, or in parts",
    de="das ist mehr, als das Modell auf einmal lesen kann; schick weniger davon oder in Teilen",
)
COMPACTED = Sentence(
    en="_This conversation has grown long: I work with a summary of its older part from here on. Nothing of it is deleted._",
    de="_Dieses Gespräch ist lang geworden: ab hier arbeite ich mit einer Zusammenfassung des älteren Teils. Gelöscht wird nichts._",
)
COMPACTED_NOW = Sentence(
    en="The older part of this conversation is summarised now. Nothing of it is deleted.",
    de="Der ältere Teil dieses Gesprächs ist jetzt zusammengefasst. Gelöscht wird nichts.",
)
NOTHING_TO_COMPACT = Sentence(
    en="There is nothing here yet to summarise.", de="Hier gibt es noch nichts zusammenzufassen."
)
NO_SUMMARY = Sentence(
    en="The model made no summary; nothing has changed.",
    de="Das Modell hat keine Zusammenfassung zustande gebracht; geändert hat sich nichts.",
)
CUT_AT_THE_LIMIT = Sentence(
    en="the answer was cut off at the model's output limit",
    de="die Antwort wurde an der Ausgabegrenze des Modells abgeschnitten",
)
CUT_BY_A_FILTER = Sentence(
    en="the model's content filter cut the answer off",
    de="der Inhaltsfilter des Modells hat die Antwort abgeschnitten",
)
NO_TEXT = Sentence(
    en="the model finished without a text", de="das Modell hat keinen Text geliefert"
)
MODEL_IS_BUSY = Sentence(
    en="the model is busy and did not answer; send `/retry` in a while",
    de="das Modell ist überlastet und hat nicht geantwortet; versuch es später mit `/retry`",
)
MODEL_UNREACHABLE = Sentence(
    en="the model can't be reached, and the operators are told why; send `/retry` in a while",
    de="das Modell ist nicht erreichbar, und die Operatoren erfahren den Grund; versuch es später mit `/retry`",
)
MODEL_REFUSED_THE_KEY = Sentence(
    en="the model refused the key; an operator has to check `[provider] api_key`",
    de="das Modell hat den Schlüssel abgelehnt; ein Operator muss sich `[provider] api_key` ansehen",
)
MODEL_CANNOT_ANSWER = Sentence(
    en="the model can't answer: {why}", de="das Modell kann nicht antworten: {why}"
)
CONTEXT_IS_MISSING = Sentence(
    en="the model was not asked, because something that it has to be told is missing; the operators know",
    de="das Modell wurde nicht gefragt, weil etwas fehlt, das es wissen muss; die Operatoren wissen davon",
)
CONTEXT_FAILED = Sentence(
    en="the context provider `{name}` failed: {why}",
    de="der Context Provider `{name}` ist gescheitert: {why}",
)
# Names no path: the reader may be anyone who talks to the bot.
MODEL_FAILED_HERE = Sentence(
    en="the model can't answer: something is wrong on the bot's machine; the operators are told what",
    de="das Modell kann nicht antworten: auf dem Rechner des Bots stimmt etwas nicht; die Operatoren erfahren, was",
)
MODEL_FAILED_OFF_THE_RECORD = Sentence(
    en="the model can't answer, and the reason is not recorded; an operator can try it with `zeroclaw models test`",
    de="das Modell kann nicht antworten, und der Grund wird nicht aufgezeichnet; ein Operator kann es mit `zeroclaw models test` ausprobieren",
)
MODEL_HAS_A_FAULT = Sentence(
    en="the model can't answer: a fault in its provider ({why})",
    de="das Modell kann nicht antworten: ein Fehler in seiner Anbindung ({why})",
)
RESTARTED_TOO_OFTEN = Sentence(
    en="I was cut off again and again while I worked on this; send `/retry` to try again",
    de="ich wurde dabei immer wieder unterbrochen; mit `/retry` versuche ich es von vorn",
)
NOTHING_TO_SAY = Sentence(en="_Nothing to say._", de="_Nichts zu sagen._")
ANSWERED_LATE = Sentence(
    en="_Answered {wait} after it was written._",
    de="_Beantwortet {wait}, nachdem es geschrieben wurde._",
)
UNHEARD = Sentence(
    en="I can't listen to voice messages or videos: nothing here turns speech into text. Please write to me.",
    de="Sprachnachrichten und Videos kann ich nicht anhören: hier macht nichts aus Sprache Text. Schreib mir bitte.",
)
RESTARTED = Sentence(
    en="_I was restarted while writing this; the answer follows._",
    de="_Ich wurde beim Schreiben neu gestartet; die Antwort folgt._",
)

# --- the result of a call, for a person who called the tool with `/tool` -------------------------

CALL_RETURNED = Sentence(en="`{tool}` returned:", de="`{tool}` liefert:")
CALL_FAILED = Sentence(en="`{tool}` failed: {why}", de="`{tool}` ist fehlgeschlagen: {why}")
CALL_TOOK_TOO_LONG = Sentence(
    en="`{tool}` was stopped: it took longer than {time}",
    de="`{tool}` wurde abgebrochen: es dauerte länger als {time}",
)
CALL_DID_NOT_RUN = Sentence(
    en="`{tool}` did not run: {why}", de="`{tool}` wurde nicht ausgeführt: {why}"
)
CALL_REFUSED = Sentence(
    en="`{tool}` did not run: denied by {who}{because}",
    de="`{tool}` wurde nicht ausgeführt: abgelehnt von {who}{because}",
)
CALL_NOT_ANSWERED = Sentence(
    en="`{tool}` did not run: nobody approved it in time",
    de="`{tool}` wurde nicht ausgeführt: niemand hat es rechtzeitig freigegeben",
)
CALL_UNREACHABLE = Sentence(
    en="`{tool}` did not run: it needs approval, and no operator can be reached from here who may give it",
    de="`{tool}` wurde nicht ausgeführt: ein Operator müsste es freigeben, und von hier ist keiner zu erreichen, der das darf",
)
CALL_MAY_HAVE_RUN = Sentence(
    en="`{tool}` was cut off by a restart: it may have run, and what it did is unknown",
    de="`{tool}` wurde durch einen Neustart unterbrochen: es kann gelaufen sein, und was es getan hat, ist nicht bekannt",
)

# --- about turns ---------------------------------------------------------------------------------

NOTHING_RUNNING = Sentence(en="Nothing is running.", de="Gerade läuft nichts.")
OTHER_ANSWER_FIRST = Sentence(
    en="The answer to {who} is finished first; {who} or an operator may stop it.",
    de="Erst kommt die Antwort an {who} zu Ende; abbrechen darf sie {who} oder ein Operator.",
)
ONLY_THEY_MAY_STOP = Sentence(
    en="Only {who} or an operator may stop this.",
    de="Das darf nur {who} oder ein Operator abbrechen.",
)
NOTHING_TO_RETRY = Sentence(
    en="There is nothing to retry: no message of this conversation failed or was stopped.",
    de="Es gibt nichts zu wiederholen: in diesem Gespräch ist keine Antwort gescheitert, und keine wurde abgebrochen.",
)
RETRY_IS_NOT_YOURS = Sentence(
    en="What would be retried is a `/tool` call, and `/tool` is not for you: {why}",
    de="Wiederholt würde ein Aufruf mit `/tool`, und `/tool` darfst du nicht benutzen: {why}",
)
WAITING_FOR = Sentence(
    en="Waiting for {who} to approve {tools}.", de="Das wartet: {who} muss {tools} erst freigeben."
)
NO_APPROVER_REACHED = Sentence(
    en="Nobody who may approve {tools} can be reached. The question stays {until}; `/stop` ends it.",
    de="Niemand, der {tools} freigeben darf, ist zu erreichen. Die Frage bleibt {until}; `/stop` beendet sie.",
)
WAITING_AND_NEXT = Sentence(
    en="Waiting for {who} to approve {tools}; your message is next.",
    de="Das wartet: {who} muss {tools} erst freigeben; danach ist deine Nachricht an der Reihe.",
)
HALTED_AND_NEXT = Sentence(
    en="Halted by {who}; your message waits for `/resume`.",
    de="Alles wurde von {who} angehalten; deine Nachricht wartet auf `/resume`.",
)

# --- problems, for operators ----------------------------------------------------------------------

TURN_GIVEN_UP = Sentence(
    en="I was cut off again and again while I worked on it",
    de="ich wurde dabei immer wieder unterbrochen",
)
MAY_HAVE_RUN = Sentence(
    en="`{tool}` had started for {who} in `{where}` when I was cut off, and may have run. I did not repeat it.",
    de="`{tool}` war für {who} in `{where}` gestartet, als ich unterbrochen wurde, und ist vielleicht gelaufen. Ich habe es nicht wiederholt.",
)
PLATFORM_REFUSED = Sentence(
    en="{what} in `{where}` was refused by the platform: {why}.",
    de="{what} in `{where}` wurde von der Plattform abgelehnt: {why}.",
)
MAY_HAVE_ARRIVED = Sentence(
    en="{what} in `{where}` may or may not have arrived: {why}.",
    de="{what} in `{where}` steht dort vielleicht, vielleicht auch nicht: {why}.",
)
A_MESSAGE = Sentence(en="A message", de="Eine Nachricht")
AN_ANSWER = Sentence(en="An answer", de="Eine Antwort")
AN_ANSWER_TO = Sentence(en="An answer to {who}", de="Eine Antwort an {who}")
A_CARD = Sentence(en="An approval card", de="Eine Freigabekarte")
A_FILE = Sentence(en="A file", de="Eine Datei")
FILE_NOT_SENT = Sentence(
    en="The file `{name}` could not be sent: {why}.", de="Die Datei `{name}` kommt nicht an: {why}."
)
ANSWER_FAILED = Sentence(
    en="An answer to {who} in `{where}` failed: {why}.",
    de="Eine Antwort an {who} in `{where}` ist gescheitert: {why}.",
)
MORE_FAILED = Sentence(
    en="In the last {time} {count} more messages failed like that.",
    de="In den letzten {time} sind noch {count} Nachrichten auf diese Weise gescheitert.",
    one=Sentence(
        en="In the last {time} one more message failed like that.",
        de="In den letzten {time} ist noch eine Nachricht auf diese Weise gescheitert.",
    ),
)
MODEL_UNUSABLE = Sentence(
    en="The model can't be used: {why}", de="Das Modell lässt sich nicht benutzen: {why}"
)
CHANNEL_DOWN = Sentence(
    en="`{channel}` is down until you act: {why}",
    de="`{channel}` steht still, bis du etwas tust: {why}",
)
CHANNEL_KEEPS_FAILING = Sentence(
    en="`{channel}` keeps failing: {why}. I go on trying.",
    de="`{channel}` fällt immer wieder aus: {why}. Ich versuche es weiter.",
)
EVENT_GIVEN_UP = Sentence(
    en="I could not process a message on `{channel}`, although I tried again and again ({why}). I skip it.",
    de="Eine Nachricht auf `{channel}` konnte ich auch nach mehreren Versuchen nicht verarbeiten ({why}). Ich überspringe sie.",
)
CONVERSATION_FAILS = Sentence(
    en="Messages in the conversation `{conversation}` stay unanswered: {why}. I go on trying; `/new` in its chat begins another one.",
    de="Nachrichten im Gespräch `{conversation}` bleiben unbeantwortet: {why}. Ich versuche es weiter; mit `/new` beginnt in seinem Chat ein neues.",
)
POSITION_LOST = Sentence(
    en="How far I had read `{channel}` can't be read any more. What was written there while I was not running may stay unanswered; please look there.",
    de="Wie weit ich `{channel}` gelesen hatte, ist nicht mehr lesbar. Was dort geschrieben wurde, während ich nicht lief, bleibt vielleicht unbeantwortet; bitte sieh dort nach.",
)
DISK_NEARLY_FULL = Sentence(
    en="The disk is nearly full: {megabytes} MB are free where I keep everything. Make room there, or I can take no more messages.",
    de="Die Festplatte ist fast voll: wo ich alles aufhebe, sind noch {megabytes} MB frei. Schaff dort Platz, sonst kann ich keine Nachrichten mehr annehmen.",
)

# --- why a call needs approval or is refused -----------------------------------------------------

CALL_WAS_CHANGED = Sentence(
    en="it is not the call that was decided about",
    de="es ist nicht der Aufruf, über den entschieden wurde",
)
ITS_TOOL_IS_GONE = Sentence(en="its tool is no longer there", de="sein Werkzeug ist nicht mehr da")
RESOURCES_CHANGED = Sentence(
    en="what it would touch has changed since",
    de="was er berühren würde, hat sich seitdem geändert",
)
NEEDS_APPROVAL_BY_NOW = Sentence(
    en="it needs approval now: {why}", de="er braucht inzwischen eine Freigabe: {why}"
)
MAY_NO_LONGER_APPROVE = Sentence(
    en="{who} approved it and may no longer do so",
    de="{who} hat ihn freigegeben und darf das nicht mehr",
)
STATEMENT_ASKS = Sentence(en="`{id}` asks{note}", de="`{id}` fragt nach{note}")
STATEMENT_DENIES = Sentence(en="`{id}` denies it{note}", de="`{id}` verbietet es{note}")
NO_STATEMENT_ALLOWS = Sentence(
    en="no statement allows `{action}` for `{principal}`",
    de="keine Regel erlaubt `{action}` für `{principal}`",
)
IT_DOES_MORE_THAN_READ = Sentence(en="it does more than read", de="es tut mehr als nur lesen")
ITS_RISK_IS_NOT_LOW = Sentence(en="its risk is not low", de="sein Risiko ist nicht gering")
FILE_GOES_TO_GROUP = Sentence(
    en="everybody in the group gets the file", de="alle in der Gruppe bekommen die Datei"
)
IT_IS_UNDECLARED = Sentence(en="it does not declare what it does", de="es sagt nicht, was es tut")
IT_IS_UNTRUSTED = Sentence(
    en="the request holds text that nobody here vouches for, and the call was not in the message",
    de="die Anfrage enthält Text, für den hier niemand einsteht, und der Aufruf stand nicht in der Nachricht",
)
UNTRUSTED_RESULT = Sentence(en="what came from: {name}", de="was hiervon kam: {name}")
UNTRUSTED_KEPT = Sentence(
    en="what came from: {name} (where the bot wrote after it had read such text, or got files from the network)",
    de="was hiervon kam: {name} (wohin der Bot schrieb, nachdem er solchen Text gelesen hatte, oder Dateien aus dem Netz holte)",
)
UNTRUSTED_FILES = Sentence(
    en="the workspace's files (the bot wrote there after it had read such text, or got files from the network)",
    de="die Dateien des Arbeitsordners (der Bot schrieb dort, nachdem er solchen Text gelesen hatte, oder Dateien aus dem Netz holte)",
)
UNTRUSTED_NOTES = Sentence(
    en="what is kept as note {name} (the bot kept it after it had read such text)",
    de="was als Notiz {name} aufbewahrt ist (der Bot tat es, nachdem er solchen Text gelesen hatte)",
)
UNTRUSTED_CONTEXT = Sentence(
    en="what `{name}` adds to each request", de="was `{name}` jeder Anfrage beifügt"
)
UNTRUSTED_ATTACHMENT = Sentence(en='the file "{name}"', de='die Datei "{name}"')
UNTRUSTED_QUOTED = Sentence(
    en="quoted or forwarded words", de="zitierte oder weitergeleitete Worte"
)
UNTRUSTED_EARLIER = Sentence(
    en="what an older release kept without saying where it came from; `/new` begins without it",
    de="was eine ältere Version ohne Herkunft aufbewahrt hat; `/new` beginnt ohne sie",
)

# --- an approval, from its question to its end ---------------------------------------------------

ONLY_THEY_MAY_ANSWER = Sentence(
    en="only {who} may answer this", de="das darf nur {who} beantworten"
)
NOT_BY_THE_REQUESTER = Sentence(
    en="whoever asks may not approve; somebody else has to answer this",
    de="wer fragt, darf nicht selbst freigeben; das muss jemand anders beantworten",
)
ANSWER_NOT_OFFERED = Sentence(
    en="this answer is not offered here", de="diese Antwort steht hier nicht zur Wahl"
)
APPROVED_NOW = Sentence(en="approved: `{tool}`", de="freigegeben: `{tool}`")
APPROVED_FOR_A_TIME = Sentence(
    en="approved: `{tool}`, and without asking {scope}",
    de="freigegeben: `{tool}`, und ohne Nachfrage {scope}",
)
DENIED_NOW = Sentence(en="denied: `{tool}`", de="abgelehnt: `{tool}`")
REASON_PROMPT = Sentence(
    en="why is `{tool}` denied? reply with the reason",
    de="warum wird `{tool}` abgelehnt? antworte mit dem Grund",
)
OPEN_UNTIL = Sentence(en="open until {at}", de="offen bis {at}")
EXPIRED_AT = Sentence(
    en="too late: it expired at {at}", de="zu spät: die Frist ist um {at} abgelaufen"
)
ALREADY_APPROVED = Sentence(
    en="already approved by {who}{because}", de="schon freigegeben von {who}{because}"
)
ALREADY_DENIED = Sentence(
    en="already denied by {who}{because}", de="schon abgelehnt von {who}{because}"
)
ITS_TURN_WAS_STOPPED = Sentence(
    en="too late: the turn was stopped{by}", de="zu spät: die Antwort wurde abgebrochen{by}"
)
ABOUT_TO_EXPIRE = Sentence(
    en="Still waiting for an answer: {calls}. {left} left; after that it counts as denied.",
    de="Das wartet noch auf eine Antwort: {calls}. Es bleiben {left}; danach gilt es als abgelehnt.",
)
NO_SUCH_CALL = Sentence(
    en="There is no call `{number}` in this chat.", de="`{number}` ist kein Aufruf in diesem Chat."
)
TOO_MANY_NUMBERS = Sentence(
    en="One message answers {most} calls at most; nothing was changed.",
    de="Eine Nachricht nennt höchstens {most}; nichts wurde geändert.",
)
SAY_WHICH_CALL = Sentence(
    en="Say which, for example `/{command} 1`; `/pending` lists them.",
    de="Sag, welchen, zum Beispiel `/{command} 1`; `/pending` zeigt sie.",
)
ONLY_NUMBERS_APPROVE = Sentence(
    en="Nothing was approved: write only numbers after `/approve`, such as `/approve 1 3`.",
    de="Nichts wurde freigegeben: schreib nach `/approve` nur Zahlen, zum Beispiel `/approve 1 3`.",
)
WAITS_FOR_PERSON = Sentence(en=", waiting for {who}", de=", wartet auf: {who}")
NOTHING_WAITS = Sentence(en="Nothing waits for an answer.", de="Nichts wartet auf eine Antwort.")

# --- commands ------------------------------------------------------------------------------------

UNKNOWN_COMMAND = Sentence(
    en="I don't know `/{name}`; `/help` lists what I know.",
    de="`/{name}` kenne ich nicht; `/help` zeigt, was ich kenne.",
)
COMMAND_IS_NOT_YOURS = Sentence(
    en="`/{name}` is not for you: {why}", de="`/{name}` darfst du nicht benutzen: {why}"
)
NAME_THE_TOOL = Sentence(en="Name the tool: `{usage}`", de="Nenne das Werkzeug: `{usage}`")
WHO_YOU_ARE = Sentence(
    en="You are `{id}`, sender `{sender}` on `{channel}`. Roles: {roles}.",
    de="Du bist `{id}`, Absender `{sender}` auf `{channel}`. Rollen: {roles}.",
)
NO_ROLES = Sentence(en="none", de="keine")
NEW_CONVERSATION = Sentence(
    en="A new conversation; the old one is kept.",
    de="Ein neues Gespräch; das alte bleibt erhalten.",
)
OFF_THE_RECORD = Sentence(
    en="Off the record from now on: I keep what is said here only in memory, and forget it at `/otr off` or when I am restarted. I can't write, run or remember anything meanwhile. This chat itself, the model's provider and whoever is asked for an approval still see it.",
    de="Ab jetzt ohne Aufzeichnung: was hier gesagt wird, steht nur in meinem Arbeitsspeicher, und ich vergesse es bei `/otr off` oder einem Neustart. Schreiben, ausführen oder mir merken kann ich solange nichts. Dieser Chat selbst, der Anbieter des Modells und wer um eine Freigabe gebeten wird, sehen es trotzdem.",
)
OFF_THE_RECORD_ALREADY = Sentence(
    en="This is off the record already; `/otr off` ends it.",
    de="Hier wird schon nichts aufgezeichnet; `/otr off` beendet das.",
)
NEW_OFF_THE_RECORD = Sentence(
    en="A new conversation, still off the record; I forget the old one.",
    de="Ein neues Gespräch, weiterhin ohne Aufzeichnung; das alte vergesse ich.",
)
ON_RECORD_AGAIN = Sentence(
    en="On the record again: I forget what was said since `/otr`, and what was said before goes on.",
    de="Ab jetzt wieder mit Aufzeichnung: was seit `/otr` gesagt wurde, vergesse ich, und das Gespräch von vorher geht weiter.",
)
ON_RECORD_ALREADY = Sentence(
    en="This is on the record; `/otr` goes off it.",
    de="Hier wird aufgezeichnet; `/otr` beendet das.",
)
OFF_THE_RECORD_IS_GONE = Sentence(
    en="I was restarted, and what you said off the record is gone: please say again what I should still answer. We are still off the record.",
    de="Ich wurde neu gestartet, und was hier ohne Aufzeichnung gesagt wurde, ist weg: sag bitte noch einmal, was ich noch beantworten soll. Es bleibt ohne Aufzeichnung.",
)
ASKED_OFF_THE_RECORD = Sentence(
    en="it was asked off the record, and a restart deleted what it was",
    de="es wurde ohne Aufzeichnung gefragt, und ein Neustart hat gelöscht, worum es ging",
)
UNRECORDED_MAY_HAVE_RUN = Sentence(
    en="`{tool}` was called off the record in `{where}` when I was cut off, and may have run. I did not repeat it.",
    de="`{tool}` war ohne Aufzeichnung in `{where}` aufgerufen, als ich unterbrochen wurde, und ist vielleicht gelaufen. Ich habe es nicht wiederholt.",
)
LEAVES_A_TRACE = Sentence(
    en="it would leave something behind, and this conversation is off the record (`/otr off` ends that)",
    de="es würde etwas hinterlassen, und dieses Gespräch wird nicht aufgezeichnet (`/otr off` beendet das)",
)
HALTED = Sentence(
    en="Halted: nothing runs and nothing starts, until `/resume`.",
    de="Angehalten: nichts läuft und nichts beginnt, bis `/resume`.",
)
RESUMED = Sentence(
    en="Resumed: what waited is answered now.",
    de="Es geht weiter: was gewartet hat, wird jetzt beantwortet.",
)
NOTHING_IS_HALTED = Sentence(en="Nothing is halted.", de="Nichts ist angehalten.")
TOO_MANY_WAIT = Sentence(
    en="I am busy: {count} messages wait here already. I did not take this one, nor those that follow it; send it again later.",
    de="Ich bin beschäftigt: hier warten schon {count} Nachrichten. Diese habe ich nicht angenommen, die nächsten nehme ich auch nicht an; schick sie später noch einmal.",
    one=Sentence(
        en="I am busy: a message waits here already. I did not take this one, nor those that follow it; send it again later.",
        de="Ich bin beschäftigt: hier wartet schon eine Nachricht. Diese habe ich nicht angenommen, die nächsten nehme ich auch nicht an; schick sie später noch einmal.",
    ),
)

WORDS_BEHIND_A_COMMAND = Sentence(
    en="I used only the command: send the text after it as a message of its own.",
    de="Ich habe nur den Befehl ausgeführt: schick den Text dahinter als eigene Nachricht.",
)
NO_FILES_WITH_A_COMMAND = Sentence(
    en="I take no files with a command; send them with a message.",
    de="Mit einem Befehl nehme ich keine Dateien an; schick sie mit einer Nachricht.",
)

# What each command does, for `/help`.

DOES_HELP = Sentence(en="this list", de="diese Liste")
DOES_STOP = Sentence(
    en="end the answer that is being written", de="die Antwort abbrechen, die gerade entsteht"
)
DOES_RETRY = Sentence(
    en="try the newest failed or stopped message again",
    de="die letzte gescheiterte oder abgebrochene Nachricht noch einmal versuchen",
)
DOES_NEW = Sentence(
    en="begin a new conversation; the old one is kept",
    de="ein neues Gespräch beginnen; das alte bleibt erhalten",
)
DOES_OTR = Sentence(
    en="go off the record: nothing that is said is stored; `/otr off` ends it and forgets it",
    de="ohne Aufzeichnung reden: nichts davon wird gespeichert; `/otr off` beendet und vergisst es",
)
DOES_QUEUE = Sentence(
    en="what happens to messages that come while I answer; `/queue` explains it",
    de="was mit Nachrichten geschieht, die kommen, während ich antworte; `/queue` erklärt es",
)
DOES_STATUS = Sentence(
    en="what runs, what waits, which channels are up",
    de="was läuft, was wartet, welche Kanäle da sind",
)
DOES_USAGE = Sentence(
    en="what models used for you, and how much is left",
    de="was Modelle für dich verbraucht haben, und wie viel noch bleibt",
)
DOES_CONTEXT = Sentence(
    en="what fills the model's window in this conversation",
    de="was in diesem Gespräch das Fenster des Modells füllt",
)
DOES_TOOLS = Sentence(
    en="which tools and skills I have for you here",
    de="welche Werkzeuge und Skills ich hier für dich habe",
)
DOES_COMPACT = Sentence(
    en="summarise the older part of this conversation",
    de="den älteren Teil dieses Gesprächs zusammenfassen",
)
DOES_PENDING = Sentence(
    en="calls that wait for an answer", de="Aufrufe, die auf eine Antwort warten"
)
DOES_APPROVE = Sentence(en="let these calls run, once", de="diese Aufrufe freigeben, einmal")
DOES_DENY = Sentence(en="refuse these calls", de="diese Aufrufe ablehnen")
DOES_GRANTS = Sentence(
    en="what runs without asking, for how long, and by whom",
    de="was ohne Nachfrage läuft, wie lange und durch wen",
)
DOES_REVOKE = Sentence(
    en="end these grants, so that such calls ask again",
    de="diese Freigaben beenden, damit wieder nachgefragt wird",
)
DOES_TOOL = Sentence(en="call a tool yourself", de="selbst ein Werkzeug aufrufen")
DOES_HALT = Sentence(en="stop everything, until /resume", de="alles anhalten, bis /resume")
DOES_RESUME = Sentence(en="go on after /halt", de="nach /halt weitermachen")
DOES_PAIR = Sentence(
    en="who wants in and who is in; `/pair approve CODE`, `deny`, `revoke`",
    de="wer herein will und wer drin ist; `/pair approve CODE`, `deny`, `revoke`",
)
DOES_FORGET = Sentence(
    en="remove what you said to this bot; asks once more",
    de="löschen, was du diesem Bot gesagt hast; fragt noch einmal nach",
)
DOES_LANGUAGE = Sentence(
    en="choose the language of my own sentences; `/language` lists them",
    de="wählen, in welcher Sprache ich selbst spreche; `/language` zeigt die Auswahl",
)
DOES_WHOAMI = Sentence(en="who you are to this bot", de="wer du für diesen Bot bist")

# Only for platforms with a command menu whose commands are not messages, such as Discord.

DOES_ASK = Sentence(en="ask me something", de="mich etwas fragen")
TYPED_BEHIND_A_COMMAND = Sentence(
    en="what else the command needs", de="was der Befehl noch braucht"
)

# What happens to messages that arrive while an answer is being written, for `/queue`.

QUEUE_CHOICES = Sentence(
    en="What can happen to messages that you write here while I answer:",
    de="Was mit Nachrichten geschehen kann, die du hier schreibst, während ich antworte:",
)
QUEUE_IS_NOW = Sentence(en=" (now)", de=" (jetzt)")
QUEUE_CHOSEN = Sentence(en="From now on: {does}", de="Ab jetzt: {does}")
QUEUE_QUEUE = Sentence(
    en="each message waits, and gets an answer of its own.",
    de="jede Nachricht wartet und bekommt eine eigene Antwort.",
)
QUEUE_COLLECT = Sentence(
    en="what is written in a row is answered together.",
    de="was nacheinander geschrieben wird, wird zusammen beantwortet.",
)
QUEUE_STEER = Sentence(
    en="I take it into the running answer, after the next tool calls; else it waits.",
    de="ich nehme es in die laufende Antwort auf, nach den nächsten Aufrufen; sonst wartet es.",
)
QUEUE_INTERRUPT = Sentence(
    en="it ends the running answer, and I answer the newer one.",
    de="es bricht die laufende Antwort ab, und ich beantworte die neuere Nachricht.",
)

# --- /status -------------------------------------------------------------------------------------

STATUS = Sentence(
    en="- zeroclaw {version}, model {model}\n- channels: {channels}\n- messages: {here} waiting here, {waiting} waiting in all chats, {busy} being answered\n- approvals: {pending} waiting\n- disk: {megabytes} MB{halted}",
    de="- zeroclaw {version}, Modell {model}\n- Kanäle: {channels}\n- Nachrichten: hier warten {here}, in allen Chats {waiting}; in Arbeit sind {busy}\n- Freigaben: {pending} offen\n- Festplatte: {megabytes} MB{halted}",
)
STATUS_HALTED = Sentence(
    en="\n- halted by {who}; `/resume` goes on",
    de="\n- angehalten von {who}; mit `/resume` geht es weiter",
)
CHANNEL_IS_STARTING = Sentence(en="starting", de="startet")
CHANNEL_IS_UP = Sentence(en="up", de="läuft")
CHANNEL_IS_WAITING = Sentence(en="waiting", de="wartet")
CHANNEL_IS_DOWN = Sentence(en="down", de="steht still")

# --- /usage --------------------------------------------------------------------------------------

USED_BY_YOU = Sentence(
    en="- you: today {today}; in {days} days {lately}",
    de="- du: heute {today}; in {days} Tagen {lately}",
)
USED_BY_ALL = Sentence(
    en="- everybody: today {today}; in {days} days {lately}",
    de="- alle: heute {today}; in {days} Tagen {lately}",
)

# --- /context ------------------------------------------------------------------------------------

CONTEXT_FILLED = Sentence(en="{share} % of {window} tokens", de="{share} % von {window} Tokens")
CONTEXT_WINDOW_UNKNOWN = Sentence(
    en="{tokens} tokens; how many the model takes is not known",
    de="{tokens} Tokens; wie viele das Modell nimmt, ist nicht bekannt",
)
CONTEXT_PROMPT = Sentence(en="instructions", de="Anweisungen")
CONTEXT_OPERATOR = Sentence(en="operator's prompt", de="Prompt des Betreibers")
CONTEXT_SKILLS = Sentence(en="skills", de="Skills")
CONTEXT_NOTES = Sentence(en="notes", de="Notizen")
CONTEXT_SUMMARY = Sentence(en="summary", de="Zusammenfassung")
CONTEXT_MESSAGES = Sentence(en="messages", de="Nachrichten")
CONTEXT_RESULTS = Sentence(en="tool results", de="Ergebnisse")
CONTEXT_TOOLS = Sentence(en="tools", de="Werkzeuge")
CONTEXT_ANSWER = Sentence(en="for the answer", de="für die Antwort")
CONTEXT_FREE = Sentence(en="free", de="frei")

# --- /tools --------------------------------------------------------------------------------------

TOOLS_NONE = Sentence(
    en="I have no tools for you here.", de="Ich habe hier keine Werkzeuge für dich."
)
SKILLS_ARE = Sentence(
    en="Skills, loaded where one fits:", de="Skills, die ich lade, wo einer passt:"
)

# --- /forget -------------------------------------------------------------------------------------

FORGETTING_ALREADY = Sentence(
    en="I am already at work on it, and tell you when it is done.",
    de="Ich bin schon dabei und sage Bescheid, wenn es erledigt ist.",
)
FORGETTING_NOW = Sentence(
    en="I am removing it, and tell you when it is done. Whatever is running is stopped first.",
    de="Ich lösche es und sage Bescheid, wenn es erledigt ist. Was läuft, wird zuerst abgebrochen.",
)
FORGET_ONLY_YOURS = Sentence(
    en="You can only have your own words forgotten, with the code of the last ten minutes: `/forget` gives one.",
    de="Du darfst nur deine eigenen Worte löschen lassen, mit dem Code der letzten zehn Minuten: `/forget` gibt einen.",
)
YOUR_MESSAGES = Sentence(en="what you said to me", de="was du mir gesagt hast")
THEIR_MESSAGES = Sentence(en="what `{whom}` said to me", de="was `{whom}` mir gesagt hat")
FORGET_ASKS = Sentence(
    en="This removes {what}, what I answered, and what I noted of it, for good; only the audit stays, which holds no words. Files in workspaces stay too. To go on, repeat it within ten minutes as `/forget {code}`.",
    de="Das löscht endgültig, {what}, was ich geantwortet und was ich mir davon notiert habe; nur das Protokoll bleibt, in dem keine Worte stehen. Auch Dateien in Arbeitsverzeichnissen bleiben. Wenn du das willst, wiederhole es in den nächsten zehn Minuten als `/forget {code}`.",
)
FORGOTTEN = Sentence(en="Done: {what} is removed.", de="Erledigt: {what}, ist gelöscht.")
FORGOTTEN_BUT = Sentence(
    en="Done: {what} is removed, except where a record is damaged (chats: {count}). An operator has to look at that; then ask again.",
    de="Erledigt: {what}, ist gelöscht, außer wo ein Datensatz beschädigt ist (Chats: {count}). Das muss sich ein Operator ansehen; frag danach noch einmal.",
)
FORGOTTEN_NOTHING = Sentence(
    en="There is nothing left to remove: of `{whom}` I keep nothing.",
    de="Es gibt nichts mehr zu löschen: von `{whom}` bewahre ich nichts auf.",
)

# --- /grants and /revoke -------------------------------------------------------------------------

NOTHING_GRANTED = Sentence(
    en="Nothing is granted: every call that needs approval asks for it.",
    de="Nichts ist vorab freigegeben: jeder Aufruf, der eine Freigabe braucht, fragt nach.",
)
GRANT_LINE = Sentence(
    en="`{tool}`: {scope}{hash}, until {until}, by {who}",
    de="`{tool}`: {scope}{hash}, bis {until}, von {who}",
)
GRANT_HELD_BY = Sentence(
    en="{grant}, for `{holder}`, {where}", de="{grant}, für `{holder}`, {where}"
)
GRANT_AND_MORE = Sentence(en="{number} more", de="{number} weitere")
SCOPE_THIS_COMMAND = Sentence(en="exactly this command", de="genau diesen Befehl")
SCOPE_THIS_CALL = Sentence(en="exactly this call", de="genau diesen Aufruf")
SCOPE_ANY_URL = Sentence(en="any URL on {where}", de="jede URL auf {where}")
SCOPE_ANY_CONTENT = Sentence(en="any content into {where}", de="jeden Inhalt in {where}")
SCOPE_ANY_CALL = Sentence(en="any call on {where}", de="jeden Aufruf für {where}")
SCOPE_FOR = Sentence(en="{scope} for {time}", de="{scope} für {time}")
GRANT_HERE = Sentence(en="in this conversation", de="in diesem Gespräch")
GRANT_ELSEWHERE = Sentence(
    en="in the conversation `{conversation}`", de="im Gespräch `{conversation}`"
)
GRANT_IN_CHAT = Sentence(en="in `{chat}`", de="im Chat `{chat}`")
SAY_WHICH_GRANT = Sentence(
    en="Say which, for example `/revoke 1`; `/grants` lists them.",
    de="Sag, welche, zum Beispiel `/revoke 1`; `/grants` zeigt sie.",
)
NO_SUCH_GRANT = Sentence(
    en="There is no grant `{name}`; `{lists}` shows those that hold.",
    de="`{name}` ist keine Freigabe, die gilt; `{lists}` zeigt die, die gelten.",
)
GRANT_IS_NOT_YOURS = Sentence(
    en="`{name}` is not yours to revoke; an operator can.",
    de="`{name}` darfst du nicht widerrufen; ein Operator darf es.",
)
GRANT_REVOKED = Sentence(
    en="`{name}`: revoked; `{tool}` asks again.",
    de="`{name}`: widerrufen; `{tool}` fragt wieder nach.",
)

# --- strangers -----------------------------------------------------------------------------------

YOUR_CODE = Sentence(
    en="Your code is `{code}`. Tell it to whoever runs this bot; it is valid for {span}.",
    de="Dein Code ist `{code}`. Nenne ihn der Person, die diesen Bot betreibt; er gilt {span}.",
)
SECONDS = Sentence(en="{number} seconds", de="{number} Sekunden")
HOURS = Sentence(en="{count} hours", de="{count} Stunden", one=Sentence(en="1 hour", de="1 Stunde"))
MINUTES = Sentence(
    en="{count} minutes", de="{count} Minuten", one=Sentence(en="a minute", de="eine Minute")
)
YOU_ARE_ADMITTED = Sentence(en="You may talk to me now.", de="Du darfst jetzt mit mir sprechen.")
YOU_ARE_AN_OPERATOR = Sentence(
    en="You are an operator of this bot now; `/help` lists what you can do.",
    de="Du bist jetzt Operator dieses Bots; `/help` zeigt, was du tun kannst.",
)
STRANGER_FACTS = Sentence(
    en="channel: {channel}\nsender id: {sender}\nchosen name: {name}",
    de="Kanal: {channel}\nAbsender-Kennung: {sender}\nSelbst gewählter Name: {name}",
)
STRANGER_CODE = Sentence(en="\ncode: {code}", de="\nCode: {code}")
STRANGER_ASKS = Sentence(
    en="{name} wants to talk to this bot on `{channel}`",
    de="{name} möchte auf `{channel}` mit diesem Bot sprechen",
)
STRANGER_WHY = Sentence(
    en="this id is not known; approve only somebody who tells you this code",
    de="niemand mit dieser Kennung ist bekannt; lass nur herein, wer dir diesen Code nennt",
)
STRANGER_WHY_BY_ID = Sentence(
    en="this id is not known; approve it only if you know whose it is, or else by the code that they tell you: `/pair approve CODE`",
    de="niemand mit dieser Kennung ist bekannt; lass sie nur herein, wenn du weißt, wem sie gehört, oder sonst mit dem Code, der dir genannt wird: `/pair approve CODE`",
)
STRANGER_LINE = Sentence(
    en="{number}{name} wants to talk to this bot, {until}",
    de="{number}{name} möchte mit diesem Bot sprechen, {until}",
)
STRANGER_APPROVED = Sentence(en="approved: {name}", de="freigegeben: {name}")
STRANGER_DENIED = Sentence(en="denied: {name}", de="abgelehnt: {name}")
ONLY_AN_OPERATOR = Sentence(
    en="only an operator may answer this", de="das darf nur ein Operator beantworten"
)
NOT_YOURS_TO_ANSWER = Sentence(
    en="this is not yours to answer", de="das kannst du nicht beantworten"
)

# --- /pair ---------------------------------------------------------------------------------------

PAIR_USAGE = Sentence(
    en="Use `/pair list`, `/pair approve CODE`, `/pair deny CODE` or `/pair revoke PERSON`, where a person is `person:<name>` or `<channel>:<sender id>`.",
    de="So geht es: `/pair list`, `/pair approve CODE`, `/pair deny CODE` oder `/pair revoke PERSON`; eine Person ist `person:<name>` oder `<channel>:<sender id>`.",
)
PAIR_LIST_IN_PRIVATE = Sentence(
    en="Who waits and who was let in is told in private only; write `/pair` to me there.",
    de="Wer wartet und wer aufgenommen wurde, sage ich nur im privaten Chat; schreib mir dort `/pair`.",
)
PAIR_NO_SUCH_CODE = Sentence(en="nobody has the code `{code}`", de="niemand hat den Code `{code}`")
PAIR_NO_SUCH_REQUEST = Sentence(
    en="nobody called `{name}` is waiting; `/pair list` shows who is",
    de="`{name}` wartet nicht; `/pair list` zeigt, wer wartet",
)
PAIR_NO_SUCH_PERSON = Sentence(
    en="nobody is called `{name}`. {usage}", de="niemand heißt `{name}`. {usage}"
)
PAIR_NOT_YOURSELF = Sentence(
    en="you can't revoke yourself; another operator can, or the console",
    de="dich selbst kannst du nicht ausschließen; ein anderer Operator kann es, oder die Konsole",
)
PAIR_ALREADY_REVOKED = Sentence(
    en="`{name}` is already revoked by {who}", de="`{name}` ist schon ausgeschlossen, von {who}"
)
PAIR_REVOKED = Sentence(
    en="revoked: `{name}`; what they had running is stopped",
    de="ausgeschlossen: `{name}`; was für diese Person lief, wird abgebrochen",
)
PAIR_NOTHING_TO_APPROVE = Sentence(
    en="`{name}` is neither waiting nor revoked; `/pair list` shows who is",
    de="`{name}` wartet nicht und ist nicht ausgeschlossen; `/pair list` zeigt, wer es ist",
)
PAIR_READMITTED = Sentence(
    en="approved: `{name}` is let in again", de="freigegeben: `{name}` ist wieder dabei"
)
PAIR_LIST_IS_EMPTY = Sentence(
    en="Nobody is waiting, and nobody was let in or revoked.",
    de="Niemand wartet, und niemand wurde aufgenommen oder ausgeschlossen.",
)
PAIR_ADMITTED = Sentence(
    en="{name}{roles}: admitted by {who}, {at}", de="{name}{roles}: aufgenommen von {who}, {at}"
)
PAIR_ENTRY_REVOKED = Sentence(
    en="{name}{roles}: revoked by {who}, {at}", de="{name}{roles}: ausgeschlossen von {who}, {at}"
)

# --- what a call would do: the tools' own lines, on cards and in lists -----------------------------

WOULD_RUN_TOOL = Sentence(en="run {tool}", de="{tool} ausführen")
WOULD_RUN_OFFLINE = Sentence(
    en="run {command} in the sandbox, without network",
    de="{command} in der Sandbox ausführen, ohne Netz",
)
WOULD_RUN_ONLINE = Sentence(
    en="run {command} in the sandbox, with network",
    de="{command} in der Sandbox ausführen, mit Netz",
)
WOULD_RUN_UNBOXED = Sentence(
    en="run {command} WITHOUT a sandbox, as the user that the daemon runs as",
    de="{command} OHNE Sandbox ausführen, als der Benutzer, unter dem der Daemon läuft",
)
WOULD_FETCH = Sentence(en="fetch {url}", de="{url} abrufen")
WOULD_READ = Sentence(en="read {path}", de="{path} lesen")
WOULD_LIST = Sentence(en="list {path}", de="{path} auflisten")
WOULD_SEARCH = Sentence(en="search {path} for {pattern}", de="{path} nach {pattern} durchsuchen")
WOULD_WRITE = Sentence(
    en="write {number} characters to {path}",
    de="{number} Zeichen in {path} schreiben",
    one=Sentence(en="write 1 character to {path}", de="1 Zeichen in {path} schreiben"),
)
WOULD_EDIT = Sentence(
    en="edit {path}: {old} becomes {new}", de="{path} ändern: aus {old} wird {new}"
)
WOULD_SEND = Sentence(
    en="send {path} to this chat{name}{words}", de="{path} in diesen Chat schicken{name}{words}"
)
WOULD_SEND_AS = Sentence(en=" as {name}", de=" als {name}")
WOULD_SEND_SAYING = Sentence(en=", saying {words}", de=", mit den Worten {words}")
WOULD_REMEMBER = Sentence(en="remember {text}", de="{text} merken")
WOULD_RECALL = Sentence(en="recall notes with {words}", de="Notizen mit {words} nachschlagen")
WOULD_RECALL_NEWEST = Sentence(en="recall the newest notes", de="die neuesten Notizen nachschlagen")
WOULD_FORGET_NOTE = Sentence(en="forget note {number}", de="Notiz {number} vergessen")
WOULD_READ_RESULT = Sentence(
    en="read on in the earlier result {id}", de="im früheren Ergebnis {id} weiterlesen"
)
WOULD_SEARCH_RESULT = Sentence(
    en="look for {word} in the earlier result {id}",
    de="im früheren Ergebnis {id} nach {word} suchen",
)
WOULD_LOAD_TOOLS = Sentence(en="load the tools of {groups}", de="die Werkzeuge von {groups} laden")
WOULD_LOAD_SKILL = Sentence(en="load the skill {name}", de="den Skill {name} laden")
WOULD_READ_OF_SKILL = Sentence(
    en="read {path} of the skill {name}", de="{path} des Skills {name} lesen"
)
WOULD_READ_ATTACHMENT = Sentence(en="read attachment {id}", de="Anhang {id} lesen")

# --- the fixed words of a card -------------------------------------------------------------------

CARD_HEAD = Sentence(en="{who} asks; answer until {at}", de="{who} fragt; Antwort bis {at}")
CARD_IN_FILE = Sentence(en="The whole of it is in the file.", de="Das Ganze steht in der Datei.")
CARD_SCOPE = Sentence(en="“For a time” allows {scope}", de="„Eine Zeit lang“ erlaubt {scope}")
CARD_HIDES = Sentence(
    en="{count} secrets are not shown; in their place the arguments have {references}",
    de="{count} Geheimnisse werden nicht gezeigt; in den Argumenten steht dafür {references}",
    one=Sentence(
        en="one secret is not shown; in its place the arguments have {references}",
        de="ein Geheimnis wird nicht gezeigt; in den Argumenten steht dafür {references}",
    ),
)
CARD_TITLE = Sentence(
    en="{count} calls need your answer",
    de="{count} Aufrufe brauchen deine Antwort",
    one=Sentence(en="A call needs your answer", de="Ein Aufruf braucht deine Antwort"),
)
CARD_ASKED_BY = Sentence(en="asked by {who}", de="auf Anfrage von {who}")
CARD_IS_OPEN = Sentence(en="a question", de="eine Frage")
CARD_HAS_ENDED = Sentence(en="an answered question", de="eine beantwortete Frage")
CARD_DENIED_AT = Sentence(en="denied at {at}", de="abgelehnt am {at}")
CARD_LEFT = Sentence(en="{time} left", de="noch {time}")
CARD_TIME_IS_UP = Sentence(en="time is up", de="die Zeit ist um")
CARD_ALL_ONCE = Sentence(en="Approve all {count}", de="Alle {count} freigeben")
CARD_ALL_DENY = Sentence(en="Deny all {count}", de="Alle {count} ablehnen")
CARD_REASON = Sentence(en="Reason", de="Grund")
CARD_REASON_HINT = Sentence(
    en="why not, for the bot to read", de="warum nicht; der Bot liest es mit"
)
CARD_BECAUSE = Sentence(en="because …", de="weil …")
CARD_HASH = Sentence(
    en="the beginning of the hash of exactly this call",
    de="der Anfang der Prüfsumme genau dieses Aufrufs",
)
CARD_BY_NUMBER = Sentence(
    en="/approve {number} or /deny {number}", de="/approve {number} oder /deny {number}"
)
CARD_ONCE = Sentence(en="Approve once", de="Einmal freigeben")
CARD_FOR_A_TIME = Sentence(en="Approve for a time", de="Eine Zeit lang freigeben")
CARD_DENY = Sentence(en="Deny", de="Ablehnen")
CARD_DENY_BECAUSE = Sentence(en="Deny, because …", de="Ablehnen, weil …")
CARD_ONCE_SHORT = Sentence(en="✓ once", de="✓ einmal")
CARD_FOR_A_TIME_SHORT = Sentence(en="✓ a while", de="✓ länger")
CARD_DENY_SHORT = Sentence(en="✗ deny", de="✗ nein")
CARD_DENY_BECAUSE_SHORT = Sentence(en="✗ why …", de="✗ warum …")
# `by` is who decided, as `BY` says it, or empty.
CARD_APPROVED = Sentence(en="approved{by}", de="freigegeben{by}")
CARD_DENIED = Sentence(en="denied{by}", de="abgelehnt{by}")
CARD_EXPIRED = Sentence(en="expired{by}, it did not run", de="abgelaufen{by}, nicht ausgeführt")
CARD_STOPPED = Sentence(en="stopped{by}, it did not run", de="abgebrochen{by}, nicht ausgeführt")

# --- what delivery says when a message can't be shown as it should -------------------------------

# In a text where the model repeated a true receipt; what it proves is shown below.
RECEIPT_BELOW = Sentence(en="(receipt below)", de="(Beleg unten)")
# Replaces a message that the whole answer no longer needs and that can't be deleted.
CONTINUED_ABOVE = Sentence(en="(continued above)", de="(steht schon oben)")
# Ends a message that may be in the chat twice. Each part has room for the longest translation.
POSSIBLE_REPEAT = Sentence(en="\n\n(possible repeat)", de="\n\n(evtl. doppelt)")
