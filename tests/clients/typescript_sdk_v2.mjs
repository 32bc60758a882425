// The TypeScript SDK, second generation: node typescript_sdk_v2.mjs URL TOKEN TOOL ARGUMENTS-JSON [auto|legacy [SECONDS]]
// With SECONDS, the call is given up after so long.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [, , url, token, tool, args, mode, seconds] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const options = mode ? { versionNegotiation: { mode } } : {};
const client = new Client({ name: 'typescript-sdk-v2', version: '1' }, options);
await client.connect(transport);
const call = { name: tool, arguments: JSON.parse(args) };
if (seconds) {
  const signal = AbortSignal.timeout(seconds * 1000);
  const cancelled = await client.callTool(call, { signal }).then(() => false, () => signal.aborted);
  const { tools } = await client.listTools();
  console.log(JSON.stringify({ cancelled, tools: tools.map((tool) => tool.name) }));
  await client.close();
  process.exit();
}
const { tools } = await client.listTools();
const progress = [];
const onprogress = (notification) => progress.push(notification.progress);
const result = await client.callTool(call, { onprogress });
const unknown = await client.callTool({ name: 'no_such_tool', arguments: {} }).then(() => null, (error) => error.message);
console.log(JSON.stringify({
  protocol: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  server: client.getServerVersion?.()?.name,
  tools: tools.map((tool) => tool.name),
  error: result.isError ?? false,
  structured: result.structuredContent,
  text: result.content[0].text,
  progress,
  unknown,
}));
await client.close();
