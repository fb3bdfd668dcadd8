// The official TypeScript client as an editor: a session in several folders, which another process loads, and a
// turn that is cancelled while a question is open, which the client answers all the same.

import { methods } from "@agentclientprotocol/sdk";

import { cwd, first, initialize, open, prompt, second, withAgent } from "./agent.mjs";

await withAgent([], async (agent, updates, nextUpdate) => {
  await initialize(agent);
  const { sessionId } = await open(agent, [first, second]);
  await prompt(agent, sessionId, "hello");
  await agent.request(methods.agent.session.load, { sessionId, cwd, additionalDirectories: [first, second], mcpServers: [] });
  const turn = prompt(agent, sessionId, "ask");
  await agent.notify(methods.agent.session.cancel, { sessionId });
  await turn;
});
