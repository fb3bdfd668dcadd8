// What the clients here share: an agent process behind the official TypeScript client, and its requests.
//
//   node CLIENT.mjs RECORD CWD DIR DIR -- COMMAND ARGS...
//
// COMMAND is started anew for each part of a client, so its sessions have to survive between processes. CWD and
// both DIRs hold a file with the word "tangerine". BEHIND, an environment variable with a JSON array, is the
// command of another agent, which COMMAND puts behind itself: one that answers the prompt "wait" when it is
// cancelled, and plays the messages in a prompt that begins with "play".
//
// Each check is a line of JSON on standard output: {"name", "ok", "detail"}. RECORD gets every line of
// both sides as it was on the pipe, with "> " before the client's and "< " before the agent's; "#" starts a
// process. The exit code is 1 if a check failed.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, writeSync } from "node:fs";
import { Readable, Writable } from "node:stream";

import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";

import { checks } from "./checks.mjs";
import { recorder } from "./recorder.mjs";

const [recordPath, cwd, first, second, dashes, ...command] = process.argv.slice(2);
if (dashes !== "--" || command.length === 0) {
  console.error("usage: node CLIENT.mjs RECORD CWD DIR DIR -- COMMAND ARGS...");
  process.exit(2);
}
export { recordPath, cwd, first, second };

/** The arguments that put the other agent behind the program. */
export const behind = ["--", ...JSON.parse(process.env.BEHIND)];

const record = openSync(recordPath, "w");
const { check, refused, failures } = checks();
export { check, refused };
process.on("exit", (code) => (process.exitCode = code || (failures() > 0 ? 1 : 0)));

/** Runs op with a client of a new agent process, and sees the process off. */
export async function withAgent(args, op, makeClient = client) {
  writeSync(record, "#\n");
  const child = spawn(command[0], [...command.slice(1), ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  const stream = ndJsonStream(
    Writable.toWeb(child.stdin),
    Readable.toWeb(child.stdout).pipeThrough(recorder(record, "< ")),
  );
  // What the client writes is recorded before the agent can see it.
  const toAgent = new TransformStream({
    transform(message, out) {
      writeSync(record, "> " + JSON.stringify(message) + "\n");
      out.enqueue(message);
    },
  });
  toAgent.readable.pipeTo(stream.writable).catch(() => {});
  const updates = [];
  updates.asked = [];
  let wake = () => {};
  const app = makeClient({ name: "interop" }).onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params);
    wake();
  }).onRequest(methods.client.session.requestPermission, ({ params }) => {
    updates.asked.push(params);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  });
  const nextUpdate = () => new Promise((resolve) => (wake = resolve));
  const result = await app.connectWith(
    { readable: stream.readable, writable: toAgent.writable },
    async (agent) => {
      const result = await op(agent, updates, nextUpdate);
      child.stdin.end();
      return result;
    },
  );
  const [code] = await exit;
  check("W9/the process ends with its input", code === 0, { code });
  return result;
}

export const initialize = (agent, capabilities) =>
  agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false, ...capabilities },
    clientInfo: { name: "interop", version: "1" },
  });

export const open = (agent, additionalDirectories) =>
  agent.request(methods.agent.session.new, { cwd, additionalDirectories, mcpServers: [] });

export const prompt = (agent, sessionId, text) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

/** The ids that session/list answers. Filters that the SDK does not know pass through it. */
export const list = async (agent, filter) =>
  (await agent.request(methods.agent.session.list, filter)).sessions.map((s) => s.sessionId);

export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

export const spoken = (updates, sessionId) =>
  updates
    .filter((u) => u.sessionId === sessionId)
    .map((u) => JSON.stringify(u.update))
    .join("\n");
