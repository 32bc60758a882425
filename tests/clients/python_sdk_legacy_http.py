"""The official Python SDK (1.x, which begins with `initialize`), with a bearer token.

    python python_sdk_legacy_http.py URL TOKEN TOOL ARGUMENTS-JSON [SECONDS]

With SECONDS, the call is given up after so long.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def given_up(session, tool, arguments, seconds):
    try:
        await asyncio.wait_for(session.call_tool(tool, arguments), seconds)
        cancelled = False
    except asyncio.TimeoutError:
        cancelled = True
    return {"cancelled": cancelled, "tools": [tool.name for tool in (await session.list_tools()).tools]}


async def main(url, token, tool, arguments, seconds=None):
    headers = {"Authorization": f"Bearer {token}"}
    async with streamablehttp_client(url, headers=headers) as (reader, writer, _session_id):
        async with ClientSession(reader, writer) as session:
            greeting = await session.initialize()
            await session.send_ping()
            if seconds:
                print(json.dumps(await given_up(session, tool, json.loads(arguments), float(seconds))))
                return
            tools = await session.list_tools()
            seen = []

            async def progressed(progress, _total, _message):
                seen.append(progress)

            result = await session.call_tool(tool, json.loads(arguments), progress_callback=progressed)
            try:
                await session.call_tool("no_such_tool", {})
                unknown = None
            except Exception as error:
                unknown = str(error)
            print(json.dumps({
                "protocol": greeting.protocolVersion,
                "server": greeting.serverInfo.name,
                "tools": [tool.name for tool in tools.tools],
                "error": result.isError,
                "structured": result.structuredContent,
                "text": result.content[0].text,
                "progress": seen,
                "unknown": unknown,
            }))


asyncio.run(main(*sys.argv[1:]))
