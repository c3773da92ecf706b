"""Faust's own command-line worker, of whose libraries only warnings are printed unless somebody asks for more."""

from __future__ import annotations

import logging

import faust

SERVICES = ("kagent.worker.faust_app", "kagent.worker.transport", __name__)
"""Modules with services of Faust's as kagent has them: Faust logs their starts and stops under the module's name, kagent nothing."""


class QuietWorker(faust.Worker):
    """With ``faust --quiet``, which ``kagent worker`` sets, kagent's lines have the level that was asked for and all others WARNING.

    At INFO, Faust and aiokafka print some eighty lines to the first judgement, and kagent's own are lost among them. DEBUG is
    asked for by somebody who wants them all.
    """

    def on_setup_root_logger(self, logger: logging.Logger, level: int) -> None:
        """Called by Faust once its handlers are there."""
        super().on_setup_root_logger(logger, level)
        if self.quiet and level >= logging.INFO:
            logger.setLevel(max(level, logging.WARNING))
            logging.getLogger("kagent").setLevel(level)
            for module in SERVICES:
                logging.getLogger(module).setLevel(max(level, logging.WARNING))
