"""What a provider is, and the trouble it can be in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from predictive_credit import config
from predictive_credit.records import Prompt, Reply


class Trouble(Exception):
    """No content came back for a reason of transport, so that the unit may be sent again.

    is_reached: whether the request got to a server at all; an outage on our side is not the provider's
    failure to answer. retry_after_s: the wait that the server asked for, in seconds. is_rate_limit: we
    asked too often or too much, which says nothing about the unit that met the limit.
    """

    def __init__(
        self, said: str, *, is_reached: bool = True, retry_after_s: float | None = None,
        is_rate_limit: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(said)
        self.is_reached = is_reached
        self.retry_after_s = retry_after_s
        self.is_rate_limit = is_rate_limit


class Rejected(Exception):
    """The provider will not take our requests as they are: a key, a model id, a setting. Asking ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A reply, and how long to wait before the next request where the headers say that a limit is used up."""

    reply: Reply
    wait_s: float | None = None


class Provider(Protocol):
    """A model behind somebody else's server. One call sends one request; who asks it retries."""

    @property
    def name(self) -> str:
        """The configured name."""

    @property
    def settings(self) -> config.Provided:
        """Concurrency, deadline and the model's id."""

    async def answer(self, prompt: Prompt, *, timeout_s: float) -> Delivery:
        """The reply to one prompt, whatever its content.

        `reply.latency_s` is this request's; cost and attempts are left to who asks, unless the provider
        itself says what a call cost. Raises Trouble or Rejected, nothing else of the provider's.
        """

    async def aclose(self) -> None:
        """Close connections. A second call does nothing."""
