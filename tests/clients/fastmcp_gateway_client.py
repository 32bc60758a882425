"""A client of a gateway: for each line on stdin, `{"list": true}` or `{"calls": [[TOOL, ARGUMENTS], ...]}`, whose
calls run at once, one line on stdout.

    python fastmcp_gateway_client.py URL [TOKEN]
"""

import asyncio
import json
import sys
import time

from fastmcp import Client
from fastmcp.client.auth import BearerAuth


async def call(client, tool, arguments):
    try:
        result = await client.call_tool(tool, arguments, raise_on_error=False)
    except Exception as error:
        return {"error": str(error)}
    if result.is_error:
        return {"error": result.content[0].text if result.content else ""}
    return {"structured": result.structured_content}


async def answer(request, url, token=None):
    async with Client(url, auth=BearerAuth(token) if token else None) as client:
        if request.get("list"):
            return sorted(tool.name for tool in await client.list_tools())
        begun = time.monotonic()
        results = await asyncio.gather(*(call(client, *one) for one in request["calls"]))
        return {"results": results, "seconds": time.monotonic() - begun}


for line in sys.stdin:
    print(json.dumps(asyncio.run(answer(json.loads(line), *sys.argv[1:]))), flush=True)
