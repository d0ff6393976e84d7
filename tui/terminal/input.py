"""Reads what a terminal sends: keys, mouse reports, pastes and answers, whatever bytes they come as."""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Generator, Iterable

from textual import events
from textual.keys import Keys
from textual.message import Message

from .textual_internals import KeyParser, ParseError, Peek1, Read1, TokenCallback

# Columns and rows of the largest terminal that is believed; a report of more is noise, and drawing it would take all
# memory.
LARGEST_TERMINAL = (4096, 2048)

# Key reports of the kitty protocol: CODE[:SHIFTED[:BASE]] [; MODIFIERS[:EVENT] [; TEXT[:TEXT]...]] FINAL
# (https://sw.kovidgoyal.net/kitty/keyboard-protocol/). Textual asks for the short form alone, but another program may
# have left the terminal in a mode that sends the others.
_KEY_REPORT = re.compile(r"\x1b\[([\d:]*)(?:;([\d:]*))?(?:;([\d:]*))?;*([u~ABCDEFHPQRS])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PASTE_START, _PASTE_END = "\x1b[200~", "\x1b[201~"
_RELEASE = "3"
_LARGEST_CODE = 0x10FFFF
# Shift, alt, ctrl, super, hyper, meta, caps lock and num lock, plus one.
_LARGEST_MODIFIERS = 256


class TerminalParser(KeyParser):
    """Textual's parser, which no input ends.

    Sequences that it cannot take are dropped, and the input after them is read as usual.
    """

    def parse(self, token_callback: TokenCallback[Message]) -> Generator[Read1 | Peek1, str, None]:
        """Parse for ever: begin anew behind an input that raised."""

        def checked(token: Message) -> None:
            if _is_believable(token):
                token_callback(token)

        while not self.is_eof:
            try:
                yield from super().parse(checked)
                return
            except ParseError:
                raise
            except Exception:
                logging.getLogger(__name__).warning("dropped a sequence of the terminal", exc_info=True)

    def read_keys(self, sequence: str, alt: bool) -> Iterable[events.Key]:
        """Read the key reports of the kitty protocol in every form, other sequences as Textual does."""
        report = _KEY_REPORT.fullmatch(sequence) if len(sequence) > 2 else None
        if report is None:
            return super().read_keys(sequence, alt)
        short = _short_form(report)
        # Ignored, not nothing: of an unknown sequence the parser takes what follows for its rest.
        return super().read_keys(short, alt) if short else [events.Key(Keys.Ignore, sequence)]


def _short_form(report: re.Match[str]) -> str:
    """Return a key report as Textual knows it; empty where no key was pressed, or where no such key exists."""
    code, modifiers, text, final = (group or "" for group in report.groups())
    code = code.partition(":")[0]
    modifiers, _, event = modifiers.partition(":")
    texts = [part for part in text.split(":") if part]
    if event == _RELEASE or not all(_is_character(part) for part in (code or "1", *texts)):
        return ""
    if int(modifiers or "1") > _LARGEST_MODIFIERS:
        return ""
    if not (modifiers or texts):
        return f"\x1b[{code}{final}"
    return f"\x1b[{code};{modifiers}{';' if texts else ''}{':'.join(texts)}{final}"


def _start_of(mark: str, text: str) -> str:
    """Return the longest start of a mark that a text ends with."""
    return next((mark[:size] for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), "")


def _is_character(code: str) -> bool:
    """Return whether a decimal number stands for a character that can be encoded."""
    return len(code) <= 7 and int(code) <= _LARGEST_CODE and not 0xD800 <= int(code) <= 0xDFFF


def _is_believable(message: Message) -> bool:
    """Return whether sizes and places lie within what a terminal can have."""
    if isinstance(message, events.Resize):
        columns, rows = message.size
        return 0 < columns <= LARGEST_TERMINAL[0] and 0 < rows <= LARGEST_TERMINAL[1]
    if isinstance(message, events.MouseEvent):
        return message.x < LARGEST_TERMINAL[0] and message.y < LARGEST_TERMINAL[1]
    return True


class TerminalInput:
    """Turns the bytes of a terminal into messages.

    Bytes that are not UTF-8 become U+FFFD, each of its own, so that the letters behind them are read as they were
    typed.
    """

    def __init__(self) -> None:
        # Each byte that cannot be decoded becomes a surrogate; "replace" would join several.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parser = TerminalParser()
        self._is_pasting = False
        # The end of what was read, which may begin a mark.
        self._tail = ""

    def feed(self, data: bytes) -> Iterable[Message]:
        """Yield the messages that are complete with these bytes."""
        text = self._decoder.decode(data)
        if not text.isascii():
            text = _SURROGATE.sub("\ufffd", text)
        if text := self._without_escapes_in_pastes(text):
            yield from self._parser.feed(text)

    def _without_escapes_in_pastes(self, text: str) -> str:
        """Drop the escapes of pasted text: Textual would read the letters behind them as keys."""
        kept = ""
        while text:
            joined = self._tail + text
            if self._is_pasting:
                pasted, mark, text = joined.partition(_PASTE_END)
                # The rest of the mark may come with the next bytes.
                self._tail = "" if mark else _start_of(_PASTE_END, pasted)
                kept += pasted.removesuffix(self._tail).replace("\x1b", "") + mark
                self._is_pasting = not mark
            else:
                _, mark, rest = joined.partition(_PASTE_START)
                kept += text.removesuffix(rest) if mark else text
                self._tail = "" if mark else joined[1 - len(_PASTE_START) :]
                self._is_pasting, text = bool(mark), rest
        return kept

    def tick(self) -> Iterable[Message]:
        """Yield what has waited too long for the rest of a sequence, such as a lone escape; call it every 0.1 s."""
        yield from self._parser.tick()
