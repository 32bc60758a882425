"""The official Python SDK (1.x) calls a tool that needs an approval, and answers what it is asked.

    python python_sdk_legacy_approval.py URL TOKEN TOOL accept|decline|cancel

It prints what its user was asked, what its progress said, and the result.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import ElicitResult


async def main(url, token, tool, answer):
    asked, said = [], []

    async def ask(_context, params):
        asked.append(params.message)
        return ElicitResult(action=answer, content={} if answer == "accept" else None)

    async def progressed(_progress, _total, message):
        said.append(message)

    headers = {"Authorization": f"Bearer {token}"}
    async with streamablehttp_client(url, headers=headers) as (reader, writer, _session_id):
        async with ClientSession(reader, writer, elicitation_callback=ask) as session:
            greeting = await session.initialize()
            result = await session.call_tool(tool, {}, progress_callback=progressed)
            print(json.dumps({
                "protocol": greeting.protocolVersion,
                "asked": asked,
                "progress": said,
                "error": result.isError,
                "text": result.content[0].text,
            }))


asyncio.run(main(*sys.argv[1:]))
