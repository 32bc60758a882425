"""Drives a server as Microsoft UFO's LinuxAgent does.

UFO sends no header. It makes one fastmcp client to list the tools; then, for every call, another client in an
event loop of its own in a worker thread, and hands on nothing of the result but its `data`.

    python ufo.py URL TOKEN CALLS-JSON       CALLS: [[TOOL, ARGUMENTS], …]; TOKEN: "-" or a bearer
"""

import asyncio
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from fastmcp import Client
from fastmcp.client.auth import BearerAuth


def client(url, token):
    return Client(url) if token == "-" else Client(url, auth=BearerAuth(token))


async def register(url, token):
    async with client(url, token) as connected:
        tools = await connected.list_tools()
        return {
            tool.name: {
                "description": tool.description,
                "schema": tool.inputSchema or {},
                "output": tool.outputSchema or {},
            }
            for tool in tools
        }


def call(url, token, tool, arguments):
    def work():
        async def once():
            async with client(url, token) as connected:
                return await connected.call_tool(name=tool, arguments=arguments, raise_on_error=False)

        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(once())
        finally:
            loop.close()

    begun = time.monotonic()
    with ThreadPoolExecutor(1) as executor:
        try:
            result = executor.submit(work).result(6000)
        # UFO turns every exception into a failed result.
        except Exception as error:
            return {"status": "failure", "error": f"Tool {tool} execution failed: {error}", "result": None}
    seconds = time.monotonic() - begun
    if result.is_error:
        return {"status": "failure", "error": result.content[0].text, "result": None, "seconds": seconds}
    return {"status": "success", "error": None, "result": result.data or None, "seconds": seconds}


def main(url, token, calls):
    tools = asyncio.run(register(url, token))
    results = [call(url, token, tool, arguments) for tool, arguments in json.loads(calls)]
    print(json.dumps({"tools": tools, "results": results}))


main(*sys.argv[1:])
