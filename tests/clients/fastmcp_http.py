"""The fastmcp client, with a bearer token: lists the tools, then calls one.

    python fastmcp_http.py URL TOKEN TOOL ARGUMENTS-JSON [SECONDS]

With SECONDS, the call is given up after so long.
"""

import asyncio
import json
import sys

import fastmcp
from fastmcp import Client
from fastmcp.client.auth import BearerAuth


async def given_up(client, tool, arguments, seconds):
    try:
        await asyncio.wait_for(client.call_tool(tool, arguments, raise_on_error=False), seconds)
        cancelled = False
    except asyncio.TimeoutError:
        cancelled = True
    return {"cancelled": cancelled, "tools": [tool.name for tool in await client.list_tools()]}


async def main(url, token, tool, arguments, seconds=None):
    seen = []

    async def progressed(progress, _total, _message):
        seen.append(progress)

    async with Client(url, auth=BearerAuth(token)) as client:
        if seconds:
            print(json.dumps(await given_up(client, tool, json.loads(arguments), float(seconds))))
            return
        tools = await client.list_tools()
        result = await client.call_tool(
            tool, json.loads(arguments), raise_on_error=False, progress_handler=progressed
        )
        try:
            await client.call_tool("no_such_tool", {}, raise_on_error=False)
            unknown = None
        except Exception as error:
            unknown = str(error)
    print(json.dumps({
        "client": f"fastmcp {fastmcp.__version__}",
        "tools": [tool.name for tool in tools],
        "error": result.is_error,
        "structured": result.structured_content,
        "text": result.content[0].text,
        "progress": seen,
        "unknown": unknown,
    }))


asyncio.run(main(*sys.argv[1:]))
