// The TypeScript SDK, first generation: node typescript_sdk_v1.mjs URL TOKEN TOOL ARGUMENTS-JSON
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, , url, token, tool, args] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const client = new Client({ name: 'typescript-sdk-v1', version: '1' }, { capabilities: {} });
await client.connect(transport);
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({
  protocol: transport.protocolVersion,
  server: client.getServerVersion()?.name,
  tools: tools.map((tool) => tool.name),
  error: result.isError ?? false,
  structured: result.structuredContent,
  text: result.content[0].text,
}));
await client.close();
