"""A server of the shape of Microsoft UFO's Linux MCP server, to compare with: FastMCP over HTTP with its sessions,
one tool that starts a subprocess for each call.

    python ufo_server.py PORT
"""

import asyncio
import shlex
import sys

from fastmcp import FastMCP

server = FastMCP("a server to compare with")


@server.tool()
async def execute_command(command: str, timeout: int = 30) -> dict:
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        stdout, stderr = await asyncio.wait_for(process.communicate(), timeout)
    except asyncio.TimeoutError:
        process.kill()
        await process.wait()
        return {"success": False, "error": f"no end after {timeout} s"}
    return {
        "success": process.returncode == 0,
        "exit_code": process.returncode,
        "stdout": stdout.decode(errors="replace"),
        "stderr": stderr.decode(errors="replace"),
    }


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
