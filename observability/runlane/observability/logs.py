"""Structured logs: one event name a line, fields, never model or user text."""

import logging
import sys
import traceback
from typing import Final, TextIO

import structlog

TRACEBACK_CHARS_MAX: Final = 8000
LEVELS: Final = ("debug", "info", "warning", "error")


def configure_logs(*, level: str, json: bool) -> None:
    """Send structlog and the standard library's loggers to stderr, in one format.

    Args:
        level: Least severe level that is shown, one of `LEVELS`.
        json: One JSON object per line rather than text for people.

    Raises:
        ValueError: There is no such level.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is none of {', '.join(LEVELS)}")
    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=_write_traceback
        )
    )
    formatting = [structlog.processors.ExceptionRenderer(_traceback)] if json else []
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *formatting,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    for chatty in ("httpcore", "httpcore2", "httpx", "httpx2", "openai", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _traceback(exc_info: structlog.typing.ExcInfo) -> str:
    """Return a bounded traceback without the values of variables: those may be secrets."""
    text = "".join(traceback.format_exception(*exc_info)).rstrip()
    if len(text) <= TRACEBACK_CHARS_MAX:
        return text
    half = TRACEBACK_CHARS_MAX // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"


def _write_traceback(out: TextIO, exc_info: structlog.typing.ExcInfo) -> None:
    out.write("\n" + _traceback(exc_info))
