"""Limits how long a loaded model predicts, in all of its batches together."""

from __future__ import annotations

import pyarrow as pa

from lakeward.pipelines.models.model_format import Model
from lakeward.time_limit import TimeLimit

SETTING = "models.time_limit_seconds"


class TimedModel:
    """A model whose time is limited: it is interrupted, if it can be, and not asked again once its time is up.

    It is also interrupted when the work of the thread that loads it is stopped.

    Args:
        model: the loaded one.
        seconds: of all predictions together; None: no limit.
    """

    def __init__(self, model: Model, seconds: float | None) -> None:
        self._model = model
        self._limit = TimeLimit(seconds, model.interrupt, SETTING)
        self.takes_nulls = model.takes_nulls

    def predict(self, features: pa.RecordBatch) -> object:
        """See `Model.predict`.

        Raises:
            TimeLimitExceeded: its time is up. What a model gives that can't be interrupted comes too late, then.
        """
        try:
            with self._limit.running():
                found = self._model.predict(features)
        except Exception as error:
            if self._limit.expired:
                raise self._limit.exceeded("the model") from error
            raise
        if self._limit.expired:
            raise self._limit.exceeded("the model")
        return found

    def interrupt(self) -> None:
        """See `Model.interrupt`."""
        self._model.interrupt()

    def __del__(self) -> None:
        self._limit.close()
