"""A gateway made of fastmcp's proxies: several gloveport daemons behind one address, each with a token of its
own, the names of their tools kept apart by the host's name.

    python fastmcp_gateway.py PORT NAME=URL=TOKEN...

The caller's own credentials are not passed on: a host knows the gateway, and nobody else.
"""

import sys

from fastmcp import FastMCP
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.server import create_proxy


def main(port, *hosts):
    gateway = FastMCP("fleet")
    for host in hosts:
        name, url, token = host.split("=", 2)
        transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
        gateway.mount(create_proxy(transport, name=name), namespace=name)
    gateway.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="warning")


main(*sys.argv[1:])
