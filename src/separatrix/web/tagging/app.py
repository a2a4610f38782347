"""The application of a tagger's server.

    POST /predict   {"tokens": ["the", "dog"]}, or {"sequences": [[…], …]}: the tags
    POST /learn     the same with "tags": what was predicted before, whether that was wrong, the number of corrections
    GET  /info      the tags, how many corrections were learned, the mistakes among them
    GET  /healthz   whether the process is alive
    GET  /readyz    whether it learns; 503 after an error

A token is a string or, for a model of several columns, a list of strings; for a model of attributes it is a dict or a list
of their names, for one of numbers a list of numbers.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from separatrix.web.server.app import Gatekeeper, Tokens
from separatrix.web.server.reading.request_errors import RequestError, check_fields
from separatrix.web.skeleton import JSON, error_reply, skeleton
from separatrix.web.tagging.journal import Journal

log = logging.getLogger("separatrix.serve")


class TaggingServer:
    """Answers requests one after the other: a correction is learned, written to the journal, and then acknowledged."""

    def __init__(self, journal: Journal, tokens: Tokens) -> None:
        self.journal, self.gatekeeper = journal, Gatekeeper(tokens)
        self.turn = asyncio.Lock()
        self.mistakes = 0
        self.failure = ""

    def tag(self, sequences: list[Any]) -> list[list[Any]]:
        """Return the tags of each sequence."""
        tags: list[list[Any]] = self.journal.tagger.predict(sequences)
        return tags

    def learn(self, sequences: list[Any], tags: list[Any]) -> list[list[Any]]:
        """Learn from sequences and their true tags; return what was predicted before."""
        tagger = self.journal.tagger
        tagger.check_examples(sequences, tags)  # so that nothing is learned of a request that is refused
        before: list[list[Any]] = tagger.predict(sequences)
        try:
            tagger.partial_fit(sequences, tags)
            self.journal.append(sequences, tags)
        except Exception as error:
            # What is in memory may now differ from what is on the disk: nothing more is learned until a restart.
            self.failure = f"learning ended after an error; restart the server: {error}"
            log.exception("learning failed")
            raise
        self.mistakes += sum(old != new for old, new in zip(before, tags, strict=True))
        return before

    def sequences(self, content: dict[str, Any]) -> list[Any]:
        """Return the sequences of a request."""
        sequences = [content["tokens"]] if "tokens" in content else content["sequences"]
        if not isinstance(sequences, list) or not all(isinstance(sequence, list) for sequence in sequences):
            raise RequestError(422, '"tokens" must be a list of tokens, and "sequences" a list of such lists')
        return self.journal.as_tokens(sequences)

    async def predict(self, request: Request) -> JSON:
        """POST /predict."""
        await self.gatekeeper.check(request, learning=False)
        content = await _content(request)
        sequences = self.sequences(content)
        async with self.turn:
            tags = await run_in_threadpool(self.tag, sequences)
        return JSON({"tags": tags[0] if "tokens" in content else tags})

    async def correct(self, request: Request) -> JSON:
        """POST /learn."""
        await self.gatekeeper.check(request, learning=True)
        content = await _content(request)
        sequences = self.sequences(content)
        if "tags" not in content:
            raise RequestError(422, '"tags" is missing: the true tag of each token')
        tags = [content["tags"]] if "tokens" in content else content["tags"]
        if not isinstance(tags, list) or not all(isinstance(each, list) for each in tags):
            raise RequestError(422, '"tags" must be a list of tags, for "sequences" a list of such lists')
        async with self.turn:
            if self.failure:
                raise RequestError(503, self.failure)
            before = await run_in_threadpool(self.learn, sequences, tags)
        wrong = [old != new for old, new in zip(before, tags, strict=True)]
        answer = {"predicted": before, "mistake": wrong, "learned": self.journal.learned}
        if "tokens" in content:
            answer |= {"predicted": before[0], "mistake": wrong[0]}
        return JSON(answer)

    async def info(self, request: Request) -> JSON:
        """GET /info."""
        await self.gatekeeper.check(request, learning=False)
        tagger = self.journal.tagger
        return JSON(
            {
                "tags": tagger.classes_.tolist(),
                "features": tagger.n_features_in_,
                "corrections": self.journal.learned,
                "mistakes_since_start": self.mistakes,
            }
        )

    async def healthz(self, request: Request) -> JSON:
        """GET /healthz."""
        return JSON({"status": "alive"})

    async def readyz(self, request: Request) -> JSON:
        """GET /readyz."""
        if self.failure:
            raise RequestError(503, self.failure)
        return JSON({"status": "ready"})

    async def forget(self, request: Request) -> JSON:
        """POST /forget, which cannot be done."""
        await self.gatekeeper.check(request, learning=True)
        remedy = "train the tagger without the sentences, and serve it from a new folder"
        raise RequestError(409, f"a tagger's server cannot forget, since its model file has learned from them: {remedy}")


async def _content(request: Request) -> dict[str, Any]:
    try:
        content = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise RequestError(400, f"the body is not JSON: {error}") from None
    if not isinstance(content, dict) or ("tokens" in content) == ("sequences" in content):
        raise RequestError(422, 'the body must be {"tokens": […]} or {"sequences": [[…], …]}')
    check_fields(content, ("tokens", "sequences", "tags"))
    return content


def application(journal: Journal, *, tokens: Tokens, hosts: tuple[str, ...], body_limit: int) -> Starlette:
    """Return the application."""
    server = TaggingServer(journal, tokens)
    app = skeleton(hosts=hosts, body_limit=body_limit)
    for path, endpoint, method in (
        ("/predict", server.predict, "POST"),
        ("/learn", server.correct, "POST"),
        ("/info", server.info, "GET"),
        ("/healthz", server.healthz, "GET"),
        ("/readyz", server.readyz, "GET"),
        ("/forget", server.forget, "POST"),
    ):
        app.add_route(path, _answered(endpoint), methods=[method])
    return app


def _answered(endpoint: Any) -> Any:
    """Return an endpoint whose errors about the request are answers."""

    async def answer(request: Request) -> JSON:
        try:
            reply: JSON = await endpoint(request)
            return reply
        except RequestError as error:
            return error_reply(error.status, error.message)
        except (ValueError, TypeError) as error:
            return error_reply(422, str(error))

    return answer
