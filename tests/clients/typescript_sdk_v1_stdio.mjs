// The TypeScript SDK, first generation, over stdio:
// node typescript_sdk_v1_stdio.mjs TOOL ARGUMENTS-JSON COMMAND [WORD...]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const [, , tool, args, command, ...words] = process.argv;
const client = new Client({ name: 'typescript-sdk-v1', version: '1' }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args: words }));
const { tools } = await client.listTools();
const result = await client.callTool({ name: tool, arguments: JSON.parse(args) });
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), structured: result.structuredContent }));
await client.close();
