"""The fastmcp client, with a bearer token: lists the tools, then calls one.

    python fastmcp_http.py URL TOKEN TOOL ARGUMENTS-JSON
"""

import asyncio
import json
import sys

import fastmcp
from fastmcp import Client
from fastmcp.client.auth import BearerAuth


async def main(url, token, tool, arguments):
    async with Client(url, auth=BearerAuth(token)) as client:
        tools = await client.list_tools()
        result = await client.call_tool(tool, json.loads(arguments), raise_on_error=False)
    print(json.dumps({
        "client": f"fastmcp {fastmcp.__version__}",
        "tools": [tool.name for tool in tools],
        "error": result.is_error,
        "structured": result.structured_content,
        "text": result.content[0].text,
    }))


asyncio.run(main(*sys.argv[1:]))
