"""The official Python SDK (2.x), with a bearer token: lists the tools, then calls one.

    python python_sdk_http.py URL TOKEN TOOL ARGUMENTS-JSON [auto|legacy|2026-07-28 [SECONDS]]

With SECONDS, the call is given up after so long.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def given_up(client, tool, arguments, seconds):
    try:
        await asyncio.wait_for(client.call_tool(tool, arguments), seconds)
        cancelled = False
    except asyncio.TimeoutError:
        cancelled = True
    return {"cancelled": cancelled, "tools": [tool.name for tool in (await client.list_tools()).tools]}


async def main(url, token, tool, arguments, mode="auto", seconds=None):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            if seconds:
                print(json.dumps(await given_up(client, tool, json.loads(arguments), float(seconds))))
                return
            tools = await client.list_tools()
            seen, messages = [], []

            async def progressed(progress, _total, message):
                seen.append(progress)
                messages.append(message)

            result = await client.call_tool(tool, json.loads(arguments), progress_callback=progressed)
            try:
                await client.call_tool("no_such_tool", {})
                unknown = None
            except Exception as error:
                unknown = str(error)
            print(json.dumps({
                "protocol": client.protocol_version,
                "server": client.server_info.name if client.server_info else None,
                "tools": [tool.name for tool in tools.tools],
                "error": result.is_error,
                "structured": result.structured_content,
                "text": result.content[0].text,
                "progress": seen,
                "messages": messages,
                "unknown": unknown,
            }))


asyncio.run(main(*sys.argv[1:]))
