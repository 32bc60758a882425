"""The fastmcp client over stdio: starts a server, lists its tools, then calls one.

    python fastmcp_stdio.py TOOL ARGUMENTS-JSON COMMAND [WORD...]
"""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(tool, arguments, command, *words):
    async with Client(StdioTransport(command=command, args=list(words))) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, json.loads(arguments))
    print(json.dumps({"tools": [tool.name for tool in tools], "structured": result.structured_content}))


asyncio.run(main(*sys.argv[1:]))
