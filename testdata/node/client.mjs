// The official TypeScript client drives an agent through a session's life.
//
//   node client.mjs RECORD CWD DIR DIR -- COMMAND ARGS...
//
// COMMAND is started anew for each part, so its sessions have to survive between processes. CWD and
// both DIRs hold a file with the word "tangerine". BEHIND, an environment variable with a JSON array, is the
// command of another agent, which COMMAND puts behind itself: one that answers the prompt "wait" when it is cancelled.
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
  console.error("usage: node client.mjs RECORD CWD DIR DIR -- COMMAND ARGS...");
  process.exit(2);
}
const record = openSync(recordPath, "w");
const { check, refused, failures } = checks();

/** Runs op with a client of a new agent process, and sees the process off. */
async function withAgent(args, op) {
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
  let wake = () => {};
  const app = client({ name: "interop" }).onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params);
    wake();
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

const initialize = (agent) =>
  agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "interop", version: "1" },
  });

const open = (agent, additionalDirectories) =>
  agent.request(methods.agent.session.new, { cwd, additionalDirectories, mcpServers: [] });

const prompt = (agent, sessionId, text) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

/** The ids that session/list answers. Filters that the SDK does not know pass through it. */
const list = async (agent, filter) =>
  (await agent.request(methods.agent.session.list, filter)).sessions.map((s) => s.sessionId);

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const spoken = (updates, sessionId) =>
  updates
    .filter((u) => u.sessionId === sessionId)
    .map((u) => JSON.stringify(u.update))
    .join("\n");

const stored = await withAgent([], async (agent, updates) => {
  const { protocolVersion, agentCapabilities, agentInfo } = await initialize(agent);
  check("W10/version 1 gets 1", protocolVersion === 1, { protocolVersion });
  const { sessionCapabilities: can } = agentCapabilities;
  check("A1/capabilities", can.additionalDirectories && can.list && can.close, agentCapabilities);
  check("A1/the agent says who it is", agentInfo?.name && agentInfo?.version, agentInfo);

  const plain = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const { sessionId, ...rest } = await open(agent, [first, second]);
  check("A9/two additional directories", sessionId !== plain.sessionId, { sessionId });
  check("A21/the response has no roots", !("additionalDirectories" in rest || "cwd" in rest), rest);

  const roots = await prompt(agent, sessionId, "/roots");
  const told = spoken(updates, sessionId);
  const places = [cwd, first, second].map((dir) => told.indexOf(dir));
  check("A20/the roots in order", roots.stopReason === "end_turn" && places[0] >= 0 && places[0] < places[1] && places[1] < places[2], { told });
  updates.length = 0;
  const search = await prompt(agent, sessionId, "/search tangerine");
  const found = spoken(updates, sessionId);
  check("A20/a search sees every root", search.stopReason === "end_turn" && [cwd, first, second].every((dir) => found.includes(dir)), { found });
  updates.length = 0;
  await prompt(agent, plain.sessionId, "/search tangerine");
  const narrow = spoken(updates, plain.sessionId);
  check("A22/a session without them sees none", narrow.includes(cwd) && !narrow.includes(first) && !narrow.includes(second), { narrow });

  const both = [sessionId, plain.sessionId];
  check("A16/no filter", same((await list(agent, {})).sort(), both.toSorted()), both);
  check("A16/by cwd", same((await list(agent, { cwd })).sort(), both.toSorted()), both);
  check("A16/by another cwd", same(await list(agent, { cwd: first }), []), {});
  check("A16/by roots", same(await list(agent, { additionalDirectories: [first, second] }), [sessionId]), {});
  check("A16/by roots in another order", same(await list(agent, { additionalDirectories: [second, first] }), []), {});
  check("A16/by a part of the roots", same(await list(agent, { additionalDirectories: [first] }), []), {});
  check("A16/an empty list is no roots", same(await list(agent, { additionalDirectories: [] }), [plain.sessionId]), {});
  check("A16/both filters", same(await list(agent, { cwd, additionalDirectories: [first, second] }), [sessionId]), {});

  for (const [name, value] of Object.entries({
    "A3/null": null,
    "A3/a null entry": [null],
    "A3/a string": "x",
    "A3/an object": {},
    "A3/a number entry": [1],
    "A4/an empty entry": [""],
    "A4/a relative entry": ["rel"],
    "A4/a NUL character": [cwd + "\u0000"],
    "A4/a lone surrogate": [cwd + "\ud800"],
    "A6/a missing directory": [cwd + "/missing"],
  })) {
    await refused(name, -32602, () => open(agent, value));
  }
  check("A5/nothing was created", same((await list(agent, {})).length, 2), {});

  check("A28/close", same(await agent.request(methods.agent.session.close, { sessionId }), {}), {});
  check("A28/a closed session stays listed", (await list(agent, {})).includes(sessionId), {});
  await refused("A28/a closed session takes no prompt", -32002, () => prompt(agent, sessionId, "/roots"));
  return sessionId;
});

await withAgent([], async (agent) => {
  await initialize(agent);
  const { sessions } = await agent.request(methods.agent.session.list, { additionalDirectories: [first, second] });
  check("A19/found by another process", sessions.length === 1 && sessions[0].sessionId === stored, sessions);
  check("A15/with its roots", sessions[0]?.cwd === cwd && same(sessions[0]?.additionalDirectories, [first, second]), sessions);
  check("A29/with a title and a time", sessions[0]?.title && !Number.isNaN(Date.parse(sessions[0]?.updatedAt)), sessions);
});

await withAgent(["--", ...JSON.parse(process.env.BEHIND)], async (agent, updates, nextUpdate) => {
  await initialize(agent);
  check("A31/the sessions of another agent are not listed", same(await list(agent, {}), []), {});
  const { sessionId } = await open(agent, [first]);
  const began = nextUpdate();
  const turn = prompt(agent, sessionId, "wait");
  await began;
  await agent.notify(methods.agent.session.cancel, { sessionId });
  const { stopReason } = await turn;
  check("W6/a running prompt is cancelled", stopReason === "cancelled", { stopReason });
});

process.exitCode = failures() > 0 ? 1 : 0;
