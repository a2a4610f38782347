"""A server of many models in this process, for tests that need no socket."""

import asyncio
import inspect

import httpx

from separatrix.web.many.app import application
from separatrix.web.many.models import Models
from separatrix.web.many.opening import ModelOpener
from separatrix.web.many.pool import WriterPool
from separatrix.web.server.app import Tokens
from separatrix.web.server.memory_budget import ProcessMemory
from separatrix.web.server.reading.request_reader import Limits
from support.served_store import FRESH


class ManyModels:
    """The application of many models in this process, asked without a socket."""

    def __init__(self, folder, *, limit=None, start=0, most_open=1000, tokens=None, declared=None, **options):
        memory = ProcessMemory.of(limit, start)
        self.opener = ModelOpener(folder, WriterPool(), Limits(), memory, FRESH, tokens=tokens or Tokens(), **options)
        if declared is not None:
            self.opener.declared, self.opener.may_create = declared, False
        self.models = Models(folder, self.opener, memory, most_open, frozenset(self.opener.declared))
        self.app = application(self.models, self.opener)

    async def __aenter__(self):
        self.lifespan = self.app.router.lifespan_context(self.app)
        await self.lifespan.__aenter__()
        transport = httpx.ASGITransport(app=self.app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60)
        return self

    async def __aexit__(self, *_):
        await self.client.aclose()
        await self.lifespan.__aexit__(None, None, None)

    async def ask(self, method, path, body=None, token=None, **headers):
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        reply = await self.client.request(method, path, json=body, headers=headers)
        return reply.status_code, reply.json() if "json" in reply.headers["content-type"] else reply.text

    async def learn(self, name, x, y):
        status, reply = await self.ask("POST", f"/models/{name}/learn", {"features": x, "label": y})
        assert status == 200, reply
        return reply


def in_one_loop(test):
    """Run an asynchronous test in an event loop of its own."""

    def run_test(*arguments, **fixtures):
        asyncio.run(test(*arguments, **fixtures))

    run_test.__name__, run_test.__doc__ = test.__name__, test.__doc__
    run_test.__signature__ = inspect.signature(test)
    return run_test
