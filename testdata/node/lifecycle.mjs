// The official TypeScript client drives stored sessions through every lifecycle method, with a new process of the
// agent for each request that makes one active; agent.mjs says how it is started.

import { symlinkSync } from "node:fs";

import { methods } from "@agentclientprotocol/sdk";

import {
  behind, check, cwd, first, initialize, list, open, prompt, recordPath, refused, same, second, spoken, withAgent,
} from "./agent.mjs";

const { load, resume, close, delete: remove } = methods.agent.session;
const fork = "session/fork"; // unstable, so the SDK does not name it

/** The lists that a request can give, and the roots that come of them. */
const lists = {
  given: { params: { additionalDirectories: [second, first] }, roots: [second, first] },
  omitted: { params: {}, roots: [] },
  empty: { params: { additionalDirectories: [] }, roots: [] },
};

/** Runs op with an initialized client of a new process. */
const restarted = (op, args = []) =>
  withAgent(args, async (agent, updates) => {
    await initialize(agent);
    return op(agent, updates);
  });

const activate = (agent, method, sessionId, params) =>
  agent.request(method, { sessionId, cwd, mcpServers: [], ...params });

/** What session/list says of a session. */
async function listed(agent, sessionId) {
  const { sessions } = await agent.request(methods.agent.session.list, {});
  return sessions.find((s) => s.sessionId === sessionId);
}

const states = ["available_commands_update", "current_mode_update", "config_option_update", "usage_update", "session_info_update"];

/** The conversation in updates, with the text of neighbouring chunks joined, as agents are free to cut it. */
function conversation(updates) {
  const joined = [];
  for (const { update } of updates) {
    const { sessionUpdate: kind, content } = update;
    const last = joined.at(-1);
    if (states.includes(kind)) continue;
    if (!kind.endsWith("_chunk")) joined.push(update);
    else if (last?.kind === kind) last.text += content.text;
    else joined.push({ kind, text: content.text });
  }
  return joined;
}

/** Checks that a session answers from its roots and from no others. */
async function answersFrom(name, agent, updates, sessionId, roots) {
  updates.length = 0;
  await prompt(agent, sessionId, "/search tangerine");
  // The agent also says which folders the session, or the copy, has lost.
  const answer = updates.filter((update) => !/no longer has|does not have/.test(JSON.stringify(update)));
  const told = spoken(answer, sessionId);
  const seen = [first, second].filter((dir) => told.includes(dir));
  check(name, told.includes(cwd) && same(seen.toSorted(), roots.toSorted()), { told, roots });
}

/** Checks what a request that made a session active says and shows, and what the next process lists. */
async function activates(clause, method, name, source, params, roots, expected) {
  const sessionId = await restarted(async (agent, updates) => {
    const result = await activate(agent, method, source, params);
    const replayed = conversation(updates);
    const sessionId = method === fork ? result.sessionId : source;
    check(`A21/${name}: the response has no roots`, !("additionalDirectories" in result || "cwd" in result), result);
    const info = await listed(agent, sessionId);
    check(`A27/${name}: the replay`, same(replayed, expected) && same(conversation(updates), expected), { replayed, expected });
    check(`${clause}/${name}: the resulting roots`, same(info?.additionalDirectories, roots), info);
    await answersFrom(`${clause}/${name}: the roots in use`, agent, updates, sessionId, roots);
    return sessionId;
  });
  await restarted(async (agent) => {
    const info = await listed(agent, sessionId);
    check(`A13/${name}: the roots after a restart`, same(info?.additionalDirectories, roots), info);
  });
  return sessionId;
}

/** A session with a history, and that history. */
const { sessionId, history } = await restarted(async (agent, updates) => {
  const { sessionId } = await open(agent, [first, second]);
  const history = [];
  for (const text of ["/search tangerine", "/read a.txt"]) {
    updates.length = 0;
    await prompt(agent, sessionId, text);
    history.push({ kind: "user_message_chunk", text }, ...conversation(updates));
  }
  return { sessionId, history };
});

/** A fork for each request, so that the turns of one are not in the history of the next. */
for (const [shape, { params, roots }] of Object.entries(lists)) {
  const forked = await activates("A14", fork, `fork, ${shape}`, sessionId, params, roots, []);
  await restarted(async (agent, updates) => {
    await activate(agent, load, forked, params);
    const replayed = conversation(updates);
    check(`A14/fork, ${shape}: the history`, forked !== sessionId && same(replayed.slice(0, history.length), history), replayed);
    const source = await listed(agent, sessionId);
    check(`A14/fork, ${shape}: the source is untouched`, same(source?.additionalDirectories, [first, second]), source);
  });
  const copy = await restarted(async (agent) => (await activate(agent, fork, sessionId, { additionalDirectories: [first] })).sessionId);
  await activates("A10", load, `load, ${shape}`, copy, params, roots, history);
  const another = await restarted(async (agent) => (await activate(agent, fork, sessionId, { additionalDirectories: [first] })).sessionId);
  await activates("A10", resume, `resume, ${shape}`, another, params, roots, []);
}

await restarted(async (agent, updates) => {
  const { sessionId: moved } = await activate(agent, fork, sessionId, { cwd: first });
  check("A14/fork, another cwd", same((await listed(agent, moved))?.cwd, first), {});
  for (const [name, method] of Object.entries({ load, resume })) {
    await refused(`A11/${name}, another cwd`, -32602, () => activate(agent, method, sessionId, { cwd: first, additionalDirectories: [second] }), "cwd_mismatch");
    await refused(`A6/${name}, a missing directory`, -32602, () => activate(agent, method, sessionId, { additionalDirectories: [cwd + "/missing"] }), "missing");
    await refused(`A3/${name}, null`, -32602, () => activate(agent, method, sessionId, { additionalDirectories: null }), "null");
    await refused(`A28/${name}, an unknown id`, -32002, () => activate(agent, method, "unknown", {}));
  }
  await refused("A28/fork, an unknown id", -32002, () => activate(agent, fork, "unknown", {}));
  await refused("A28/prompt, an unknown id", -32002, () => prompt(agent, "unknown", "/roots"));
  await refused("A28/prompt, a stored session", -32002, () => prompt(agent, sessionId, "/roots"));
  const info = await listed(agent, sessionId);
  check("A13/the roots after requests that failed", same(info?.additionalDirectories, [first, second]), info);
  check("A27/nothing is shown of requests that failed", same(conversation(updates), []), updates);
});

const alias = recordPath + ".link";
symlinkSync(cwd, alias);
await restarted(async (agent, updates) => {
  check("A17/list by another spelling", (await list(agent, { cwd: alias })).includes(sessionId), {});
  await activate(agent, load, sessionId, { cwd: alias, additionalDirectories: [first] });
  check("A17/load by another spelling", same(conversation(updates), history), updates);
  const info = await listed(agent, sessionId);
  check("A17/the spelling on record stays", info?.cwd === cwd && same(info?.additionalDirectories, [first]), info);
});

await restarted(async (agent) => {
  const { sessionId: other } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  for (const [name, id] of Object.entries({ active: other, inactive: sessionId, unknown: "unknown" })) {
    check(`A28/close, ${name}`, same(await agent.request(close, { sessionId: id }), {}), {});
    check(`A28/close, ${name}, again`, same(await agent.request(close, { sessionId: id }), {}), {});
  }
  await activate(agent, resume, other, {});
  for (const [name, id] of Object.entries({ active: other, inactive: sessionId, unknown: "unknown" })) {
    check(`A28/delete, ${name}`, same(await agent.request(remove, { sessionId: id }), {}), {});
    check(`A28/delete, ${name}, again`, same(await agent.request(remove, { sessionId: id }), {}), {});
  }
  await refused("A28/prompt, deleted", -32002, () => prompt(agent, other, "/roots"));
});

await restarted(async (agent, updates) => {
  check("A28/deleted sessions are not listed", !(await list(agent, {})).includes(sessionId), {});
  for (const [name, method] of Object.entries({ load, resume, fork })) {
    await refused(`A28/${name}, deleted`, -32002, () => activate(agent, method, sessionId, {}));
  }
  check("A28/nothing is left of the deleted", same(updates, []), updates);
});

const foreign = await restarted(async (agent) => (await open(agent, [first])).sessionId, behind);
await restarted(async (agent) => {
  for (const [name, method] of Object.entries({ load, resume, fork })) {
    await refused(`A31/${name}, a session of another agent`, -32602, () => activate(agent, method, foreign, {}), "other_agent");
  }
});
