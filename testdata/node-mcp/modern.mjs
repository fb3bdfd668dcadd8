// An MCP server of revision 2026-07-28, and of the older ones, on the official TypeScript packages. Its tool "roots"
// asks for the roots, by a result that requires input where the revision has those, and returns their URIs.
import { McpServer, inputRequired, inputResponse } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

serveStdio(() => {
  const server = new McpServer({ name: 'modern', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.registerTool('roots', { description: 'The roots.', inputSchema: z.object({}) }, async (_args, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'where');
    if (answer.kind !== 'roots') {
      return inputRequired({ inputRequests: { where: inputRequired.listRoots() }, requestState: 'as it was' });
    }
    return { content: [{ type: 'text', text: answer.roots.map((r) => r.uri).join('\n') }] };
  });
  server.registerTool('sample', { description: 'What the model says.', inputSchema: z.object({}) }, async (_args, ctx) => {
    const answer = inputResponse(ctx.mcpReq.inputResponses, 'what');
    if (answer.kind !== 'sampling') {
      const request = { messages: [{ role: 'user', content: { type: 'text', text: 'Hello' } }], maxTokens: 5 };
      return inputRequired({ inputRequests: { what: inputRequired.createMessage(request) }, requestState: 'as it was' });
    }
    const { model, stopReason, content } = answer.result;
    return { content: [{ type: 'text', text: `${model} ${stopReason}: ${content.text}` }] };
  });
  return server;
});
