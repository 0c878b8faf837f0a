"""Makes one page of lines: readable in any browser, with nothing from anywhere else in it."""

from collections.abc import Iterable
from datetime import UTC
from html import escape
from itertools import groupby

from zeroclaw.retention.export import Line

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "article{border-left:.25rem solid #ccc;padding:.1rem .8rem;margin:.6rem 0}"
    "article.said{border-color:#36c}article.answer{border-color:#393}"
    "article.call,article.result{font-size:.85rem;border-color:#a60}"
    "header{color:#666;font-size:.8rem}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;"
    "font:inherit}h2{font-size:1rem;color:#666}"
)
# Nothing is loaded and nothing runs, whatever stands in a text.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, lines: Iterable[Line]) -> str:
    """Return the page; everything that came from outside is escaped."""
    body = "\n".join(
        f"<section><h2>Conversation {escape(conversation)}</h2>\n"
        + "\n".join(map(_article, of_one))
        + "\n</section>"
        for conversation, of_one in groupby(lines, key=lambda line: line.conversation)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def _article(line: Line) -> str:
    at = line.at.astimezone(UTC)
    by = f" {escape(line.by)}" if line.by else ""
    return (
        f'<article class="{line.kind}"><header>{line.kind}{by} '
        f'<time datetime="{at.isoformat()}">{at:%Y-%m-%d %H:%M:%S} UTC</time></header>'
        f"<pre>{escape(line.text)}</pre></article>"
    )
