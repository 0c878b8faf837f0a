"""The bot's own sentences in each language, and the text of pages and mails that it reads.

Also the escaping of invisible characters, for everything that people read.
"""
