// The TypeScript SDK, second generation: node typescript_sdk_v2.mjs URL TOKEN TOOL ARGUMENTS-JSON [auto|legacy]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [, , url, token, tool, args, mode] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const options = mode ? { versionNegotiation: { mode } } : {};
const client = new Client({ name: 'typescript-sdk-v2', version: '1' }, options);
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({
  protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  server: client.getServerVersion?.()?.name,
  tools: tools.map((tool) => tool.name),
  error: result.isError ?? false,
  structured: result.structuredContent,
  text: result.content[0].text,
}));
await client.close();
