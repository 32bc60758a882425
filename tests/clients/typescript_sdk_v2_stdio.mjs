// The TypeScript SDK, second generation, over stdio:
// node typescript_sdk_v2_stdio.mjs TOOL ARGUMENTS-JSON COMMAND [WORD...]
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const [, , tool, args, command, ...words] = process.argv;
const client = new Client({ name: 'typescript-sdk-v2', version: '1' });
await client.connect(new StdioClientTransport({ command, args: words }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), structured: result.structuredContent }));
await client.close();
