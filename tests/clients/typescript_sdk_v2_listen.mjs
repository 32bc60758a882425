// The TypeScript SDK, second generation, listens for changes of the tools, and is given the new list at each, until
// one is there: node typescript_sdk_v2_listen.mjs URL TOKEN TOOL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [, , url, token, wanted] = process.argv;
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
const say = (tools) => console.log(JSON.stringify({ tools: tools.map((tool) => tool.name) }));
let done;
const there = new Promise((resolve) => { done = resolve; });
const onChanged = (error, tools) => {
  if (tools?.some((tool) => tool.name === wanted)) done(tools);
  else if (error) console.error(error);
};
const client = new Client(
  { name: 'typescript-sdk-v2', version: '1' },
  { versionNegotiation: { mode: 'auto' }, listChanged: { tools: { onChanged } } },
);
await client.connect(transport);
say((await client.listTools()).tools);
say(await there);
await client.close();
process.exit();
