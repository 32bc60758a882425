"""The official Python SDK (1.x, which begins with `initialize`), with a bearer token.

    python python_sdk_legacy_http.py URL TOKEN TOOL ARGUMENTS-JSON
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url, token, tool, arguments):
    headers = {"Authorization": f"Bearer {token}"}
    async with streamablehttp_client(url, headers=headers) as (reader, writer, _session_id):
        async with ClientSession(reader, writer) as session:
            greeting = await session.initialize()
            await session.send_ping()
            tools = await session.list_tools()
            result = await session.call_tool(tool, json.loads(arguments))
            print(json.dumps({
                "protocol": greeting.protocolVersion,
                "server": greeting.serverInfo.name,
                "tools": [tool.name for tool in tools.tools],
                "error": result.isError,
                "structured": result.structuredContent,
                "text": result.content[0].text,
            }))


asyncio.run(main(*sys.argv[1:]))
