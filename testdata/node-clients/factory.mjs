// Drives an agent with acp-factory, a library that starts agents for other programs:
//
//   node factory.mjs CWD COMMAND ARGS...
//
// It prints the ids of a session and of its forks, and the answer to a fork without a directory. What
// the agent says is not looked at: acp-factory loses updates that arrive together with the response.

import { AgentFactory } from "acp-factory";

const [cwd, command, ...args] = process.argv.slice(2);
AgentFactory.register("agent", { command, args });
const agent = await AgentFactory.spawn("agent", { permissionMode: "auto-approve" });
const session = await agent.createSession(cwd);
for await (const _ of session.prompt("/search tangerine"));
const forks = [(await session.fork()).id, (await agent.forkSession(session.id, cwd)).id];
const refused = await agent.forkSession(session.id).catch((error) => error.message);
const loaded = (await agent.loadSession(session.id, cwd)).id;
await agent.close();
console.log(JSON.stringify({ session: session.id, forks, refused, loaded }));
