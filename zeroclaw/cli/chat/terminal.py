"""A chat's terminal: a growing answer, the input below it, and above both the printed messages.

prompt_toolkit edits the input, knows how wide characters are and follows the window's size. It
draws nothing above the growing answer, and rows that it draws don't wrap, so nothing that is printed
can be erased. All text is passed to it with its style, as data.
"""

import asyncio
import os
import signal

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, DynamicCompleter, WordCompleter
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, HSplit, Window
from prompt_toolkit.output import Output
from prompt_toolkit.shortcuts import CompleteStyle

from zeroclaw.cli.chat.screen import BOLD, PROMPT, StyledText, View
from zeroclaw.cli.chat.session import Session

# Else a terminal that does not report its cursor's position gets a warning; nothing here needs it.
os.environ["PROMPT_TOOLKIT_NO_CPR"] = "1"
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminal:
    """Prints messages, and reads keys until the person leaves.

    Earlier messages are in the input's history, in memory only: the daemon's retention rules hold,
    and messages off the record are not stored.

    Args:
        view: The state of the screen.
        source: Where keys come from; this process's terminal if None.
        output: Where to draw; this process's terminal if None.
    """

    def __init__(
        self, view: View, *, source: Input | None = None, output: Output | None = None
    ) -> None:
        self._view = view
        self._history = InMemoryHistory()
        self._prompts: PromptSession[str] = PromptSession(
            [(BOLD, PROMPT)],
            multiline=True,
            prompt_continuation=" " * len(PROMPT),
            history=self._history,
            search_ignore_case=True,
            completer=DynamicCompleter(_commands),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            include_default_pygments_style=False,
            enable_suspend=True,
            erase_when_done=True,
            input=source,
            output=output,
        )
        # The cursor keeps the end visible, should the answer have more rows than the view counts.
        growing = FormattedTextControl(lambda: [("", view.growing()), ("[SetCursorPosition]", "")])
        answer = ConditionalContainer(
            Window(growing, wrap_lines=True, dont_extend_height=True),
            Condition(lambda: view.growing() != ""),
        )
        layout = self._prompts.layout
        layout.container = HSplit([answer, layout.container])
        self._prompts.app.before_render += self._resize
        self._resize()

    def show(self, text: StyledText) -> None:
        """Print a text above the input, and redraw the rest."""
        app = self._prompts.app
        if text:
            app.renderer.erase()
            app.print_text(FormattedText(text))
        app.invalidate()

    async def run(self, session: Session) -> None:
        """Read until the person leaves."""
        for text in self._view.earlier:
            self._history.append_string(text)
        loop, app = asyncio.get_running_loop(), self._prompts.app
        # Without handlers these signals would leave the terminal without echo.
        for number in _END_SIGNALS:
            loop.add_signal_handler(number, lambda: app.is_done or app.exit())
        keys = self._keys(session)
        try:
            await self._prompts.prompt_async(key_bindings=keys, set_exception_handler=False)
        except EOFError:
            return
        finally:
            for number in _END_SIGNALS:
                loop.remove_signal_handler(number)

    def _resize(self, _app: object = None) -> None:
        size = self._prompts.app.output.get_size()
        self._view.columns, self._view.max_rows = size.columns, max(1, size.rows // 2)

    def _keys(self, session: Session) -> KeyBindings:
        keys, buffer = KeyBindings(), self._prompts.default_buffer
        is_typing = has_focus(DEFAULT_BUFFER)  # and does not search

        @keys.add("enter", filter=is_typing)
        def _enter(event: KeyPressEvent) -> None:
            if event.key_processor.input_queue:
                # More keys came with it: a paste, and the terminal does not mark its ends.
                buffer.insert_text("\n")
            elif buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                text = buffer.text
                buffer.reset(append_to_history=True)
                # Not if it was pasted, or comes from the history.
                last_keys = [key.key for key in event.previous_key_sequence]
                session.enter(text, is_letter_typed=last_keys == [text.strip()])

        @keys.add("escape", "enter")
        def _further_line(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add(Keys.BracketedPaste)
        def _paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n".join(event.data.splitlines()))

        @keys.add("c-c", filter=is_typing)
        @keys.add("<sigint>")
        def _interrupt(event: KeyPressEvent) -> None:
            if event.current_buffer.text and not session.is_busy:
                event.current_buffer.reset()
            elif session.interrupt():
                event.app.exit()

        return keys


def _commands() -> Completer:
    from zeroclaw.inbound.commands.registry import COMMANDS

    return WordCompleter([f"/{name}" for name in COMMANDS], sentence=True)
