"""The official Python SDK (2.x) calls a tool that needs an approval, and answers what it is asked.

    python python_sdk_approval.py URL TOKEN TOOL accept|decline|cancel MODE

It prints what its user was asked, what its progress said, and the result.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def main(url, token, tool, answer, mode):
    asked, said = [], []

    async def ask(_context, params):
        asked.append(params.message)
        return ElicitResult(action=answer, content={} if answer == "accept" else None)

    async def progressed(_progress, _total, message):
        said.append(message)

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=ask) as client:
            result = await client.call_tool(tool, {}, progress_callback=progressed)
            print(json.dumps({
                "protocol": client.protocol_version,
                "asked": asked,
                "progress": said,
                "error": result.is_error,
                "text": result.content[0].text,
            }))


asyncio.run(main(*sys.argv[1:]))
