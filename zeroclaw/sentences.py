"""Every sentence that the bot itself says to people in chats, in each language, and nothing else.

A sentence stands once, its languages side by side; who says it and when is the rooms' business.
What a model is told, what the command line prints, logs and errors are not here: they are English.

German speaks plainly and short, and calls people `du`. A text that is shown in a group names
people instead. Words that somebody types (`/stop`, `CODE`) and names stay as they are.
"""

from zeroclaw.language import Sentence

# --- the language itself -------------------------------------------------------------------------

LANGUAGE_CHOSEN = Sentence(
    en="From now on I speak {name} with you.",
    de="Ab jetzt spreche ich {name} mit dir.",
)
LANGUAGES_SPOKEN = Sentence(
    en="My own sentences can be in {choices}. Now they are in {name}.",
    de="Meine eigenen Sätze gibt es auf {choices}. Im Moment auf {name}.",
)
