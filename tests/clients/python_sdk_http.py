"""The official Python SDK (2.x), with a bearer token: lists the tools, then calls one.

    python python_sdk_http.py URL TOKEN TOOL ARGUMENTS-JSON [auto|legacy|2026-07-28]
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url, token, tool, arguments, mode="auto"):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            tools = await client.list_tools()
            result = await client.call_tool(tool, json.loads(arguments))
            print(json.dumps({
                "protocol": client.protocol_version,
                "server": client.server_info.name if client.server_info else None,
                "tools": [tool.name for tool in tools.tools],
                "error": result.is_error,
                "structured": result.structured_content,
                "text": result.content[0].text,
            }))


asyncio.run(main(*sys.argv[1:]))
