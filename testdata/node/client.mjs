// The official TypeScript client drives an agent through a session's life; agent.mjs says how it is started.

import { methods } from "@agentclientprotocol/sdk";

import { behind, check, cwd, first, initialize, list, open, prompt, refused, same, second, spoken, withAgent } from "./agent.mjs";

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

  await refused("A5/a relative entry", -32602, () => open(agent, ["rel"]));
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

await withAgent(behind, async (agent, updates, nextUpdate) => {
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
