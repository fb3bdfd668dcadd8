// The official TypeScript client walks an agent through a session's life.
//
//   node client.mjs CWD FIRST SECOND PROMPT -- COMMAND ARGS...
//
// COMMAND is started anew for each step: a session on CWD and FIRST in which PROMPT is sent, a load of it with SECOND, and a fork.
// Permissions are granted once. What was seen is printed as a JSON object.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

const [cwd, first, second, prompt, dashes, ...command] = process.argv.slice(2);
if (dashes !== "--" || command.length === 0) {
  console.error("usage: node client.mjs CWD FIRST SECOND PROMPT -- COMMAND ARGS...");
  process.exit(2);
}

const asked = [];

/** The optionId of the option that grants once. */
function grant({ params }) {
  asked.push(params.toolCall);
  const { optionId } = params.options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
}

/** Runs a step with a new process, and returns what it returns. */
async function withAgent(step) {
  const child = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  const updates = [];
  const app = client({ name: "typescript" })
    .onNotification(methods.client.session.update, ({ params }) => updates.push(params))
    .onRequest(methods.client.session.requestPermission, grant);
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const result = await app.connectWith(stream, async (agent) => {
    await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    const result = await step(agent, updates);
    child.stdin.end();
    return result;
  });
  const [code] = await exit;
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}`);
  return result;
}

/** The ids of the sessions on CWD and some more directories. */
async function listed(agent, ...additionalDirectories) {
  const { sessions } = await agent.request(methods.agent.session.list, { cwd, additionalDirectories });
  return sessions.map((session) => session.sessionId);
}

const setup = (...additionalDirectories) => ({ cwd, additionalDirectories, mcpServers: [] });

const made = await withAgent(async (agent) => {
  const { sessionId } = await agent.request(methods.agent.session.new, setup(first));
  const { stopReason } = await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: prompt }] });
  return { sessionId, stopReason };
});

const loaded = await withAgent(async (agent, updates) => {
  const before = await listed(agent, first);
  await agent.request(methods.agent.session.load, { sessionId: made.sessionId, ...setup(second) });
  return { before, replay: JSON.stringify(updates), after: await listed(agent, second) };
});

const forked = await withAgent(async (agent) => {
  const { sessionId } = await agent.request("session/fork", { sessionId: made.sessionId, ...setup(first) });
  return { sessionId, listed: await listed(agent, first) };
});

console.log(JSON.stringify({ asked, made, loaded, forked }));
