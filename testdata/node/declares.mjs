// The official TypeScript client, once declaring every capability and once none, in front of an agent that sends
// everything that needs one; agent.mjs says how they are started.

import { client, methods } from "@agentclientprotocol/sdk/unstable";

import { behind, check, cwd, initialize, list, open, prompt, same, withAgent as withStableAgent } from "./agent.mjs";

const withAgent = (op) => withStableAgent(behind, op, client);

const everything = {
  session: { notices: {}, compaction: {}, promptSuggestions: {} },
  plan: {},
  subagents: {},
};

/** What the agent sends, with the oddities that JSON allows, and the capability that the client needs for it. */
const sent = [
  ["", `{"sessionUpdate":"agent_message_chunk", "messageId":"m1","content":{"type":"text","text":"caf\u00e9 \u2028 1.0"},"_meta":{"n":1.50}}`],
  ["notices", `{"sessionUpdate":"notice","severity":"warning","title":"Rate limited","description":null}`],
  ["", `{"title":"Look","sessionUpdate":"tool_call","toolCallId":"t1","name":"Read","kind":"read","status":"pending","_meta":{"x":1e0}}`],
  ["", `{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[ {"type":"content","content":{"type":"text","text":"found"}} ]}`],
  ["compaction", `{"sessionUpdate":"compaction_update","compactionId":"c1","status":"in_progress"}`],
  ["compaction", `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c1","content":{"type":"text","text":"so far"}}`],
  ["compaction", `{"sessionUpdate":"compaction_update","compactionId":"c1","status":"completed"}`],
  ["plan", `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p1","entries":[{"content":"step","priority":"low","status":"pending"}]}}`],
  ["plan", `{"sessionUpdate":"plan_removed","planId":"p1"}`],
  ["subagents", `{"sessionUpdate":"subagent_update","sessionId":"$child","title":"Helper","capabilities":{"cancel":{}},"state":{"state":"running"}}`],
  ["subagents", `{"sessionUpdate":"session_message","messageId":"m2","senderSessionId":"$session","recipientSessionId":"$child","content":[{"type":"text","text":"go"}]}`],
  ["content", `{"sessionUpdate":"tool_call","toolCallId":"t2","title":"Help","content":[{"type":"session","sessionId":"$child"}],"status":"completed"}`],
  ["subagents", `{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"text","text":"from the child"}}`, "$child"],
  ["subagents", `{"sessionUpdate":"subagent_update","sessionId":"$child","state":{"state":"idle","stopReason":"end_turn"}}`],
  ["suggestions", `{"sessionUpdate":"prompt_suggestions_update","suggestions":[{"text":"more"}]}`],
  ["", `{"sessionUpdate":"agent_message_chunk","messageId":"m4","content":{"type":"text","text":"end"}}`],
];

/** Updates of the program itself and of the user. */
const own = ["session_info_update", "available_commands_update", "user_message_chunk"];

/** The agent's updates, without the one whose content the SDK does not know yet and leaves out. */
const others = (updates) => updates.filter(({ update: u }) => !own.includes(u.sessionUpdate) && u.toolCallId !== "t2");

/** A value with the members of objects in order: the SDK has an order of its own. */
const sorted = (value) =>
  Array.isArray(value) ? value.map(sorted)
  : value && typeof value === "object" ? Object.fromEntries(Object.keys(value).sort().map((k) => [k, sorted(value[k])]))
  : value;

/** What of sent arrives, with the ids that the client knows. */
const arriving = (sessionId, childId, takes) =>
  sent
    .filter(([needs]) => takes(needs) && needs !== "suggestions" && needs !== "content") // which the SDK does not know yet
    .map(([, update, of = "$session"]) =>
      sorted(JSON.parse(`{"sessionId":"${of}","update":${update}}`.replaceAll("$session", sessionId).replaceAll("$child", childId))),
    );

for (const [name, capabilities, takes] of [
  ["everything", everything, () => true],
  ["nothing", {}, (needs) => needs === ""],
]) {
  const script = sent
    .filter(([needs, update]) => takes(needs) || !update.includes('"session"')) // such content passes as it comes
    .map(([, update, of = "$session"]) => `session/update {"sessionId":"${of}","update":${update}}`);
  const ask = `session/request_permission {"sessionId":"$child","toolCall":{"toolCallId":"t3","title":"Ask"},"options":[{"optionId":"o","name":"Yes","kind":"allow_once"}]}`;
  script.splice(-3, 0, ask);
  const childOf = (updates) => updates.find(({ update: u }) => u.sessionUpdate === "subagent_update")?.update.sessionId;

  const sessionId = await withAgent(async (agent, updates) => {
    await initialize(agent, capabilities);
    const { sessionId } = await open(agent, []);
    await prompt(agent, sessionId, "play " + script.join("\n").replaceAll("$child", "child-1"));
    const child = childOf(updates);
    const got = sorted(others(updates).filter(({ update: u }) => !/^(answered|refused)/.test(u.content?.text)));
    check(`A37/${name}, live`, same(got, arriving(sessionId, child, takes)), got);
    const answers = others(updates).flatMap(({ update: u }) => u.content?.text?.match(/^(answered|refused)/)?.[0] ?? []);
    if (takes("subagents")) {
      check("A36/the subagent has an id of its own", child?.startsWith(sessionId + "."), { child });
      check("A36/it asks", same(updates.asked.map((r) => r.sessionId), [child]) && same(answers, ["answered"]), { asked: updates.asked, answers });
    } else {
      check("A36/it does not ask", same(updates.asked, []) && same(answers, ["refused"]), { asked: updates.asked, answers });
    }
    return sessionId;
  });
  await withAgent(async (agent, updates) => {
    await initialize(agent, capabilities);
    await agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    const moment = (needs) => needs === "notices" || needs === "suggestions";
    const child = childOf(updates);
    const got = sorted(others(updates).filter(({ update: u }) => !/^(answered|refused)/.test(u.content?.text)));
    const want = arriving(sessionId, child, (needs) => takes(needs) && !moment(needs));
    const lacks = want.filter((u) => !got.some((g) => same(g, u)));
    check(`A37/${name}, after a load`, same(lacks, []) && got.every(({ update: u }) => takes("subagents") || u.sessionUpdate !== "subagent_update"), { lacks, got });
    check(`A37/${name}, no moments after a load`, !got.some(({ update: u }) => u.sessionUpdate === "notice" || u.sessionUpdate === "prompt_suggestions_update"), got);
    check("A36/the subagent is not listed", (await list(agent, {})).every((id) => !id.includes(".")), {});
  });
}
