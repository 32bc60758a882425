"""The official Python SDK (2.x) listens for changes of the tools, and lists them again at each, until one is there.

    python python_sdk_listen.py URL TOKEN TOOL      {"tools": […]} on a line: once it listens, and at the end
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def main(url, token, wanted):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http)) as client:

            async def names():
                return [tool.name for tool in (await client.list_tools()).tools]

            async with client.listen(tools_list_changed=True) as changes:
                print(json.dumps({"tools": await names()}), flush=True)
                async for _ in changes:
                    tools = await names()
                    if wanted in tools:
                        print(json.dumps({"tools": tools}), flush=True)
                        return


asyncio.run(main(*sys.argv[1:]))
