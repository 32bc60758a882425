"""The official Python SDK (2.x) over stdio: starts a server, lists its tools, then calls one.

    python python_sdk_stdio.py TOOL ARGUMENTS-JSON COMMAND [WORD...]
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main(tool, arguments, command, *words):
    async with Client(StdioServerParameters(command=command, args=list(words))) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, json.loads(arguments))
        print(json.dumps({
            "protocol": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "structured": result.structured_content,
        }))


asyncio.run(main(*sys.argv[1:]))
