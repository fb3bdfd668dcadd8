// The official TypeScript client and server over WebSocket.
//
//   node websocket.mjs client URL TOKEN CWD ORIGIN...
//                                              uses the server at URL, and then again as a page of each ORIGIN
//                                              in a browser; prints what it found as a line of JSON each
//   node websocket.mjs windows URL TOKEN CWD   has a session open in two clients, and prints what each was shown
//   node websocket.mjs server TOKEN            is a server; prints its URL and serves until its input ends
//
// The agent of the server answers every prompt with "you said: " and the prompt.

import { createServer } from "node:http";

import { agent, client, methods, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { AcpServer } from "@agentclientprotocol/sdk/experimental/server";
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from "@agentclientprotocol/sdk/experimental/node";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket, WebSocketServer } from "ws";

const [role, ...args] = process.argv.slice(2);
await { client: asClient, windows: asWindows, server: asServer }[role](...args);

// connectTo returns a stream to the server. Pages cannot set headers: they offer the token as a
// subprotocol, as acp-ui does, and their browser names the origin.
function connectTo(url, token, origin) {
  if (!origin) return createWebSocketStream(url, { WebSocket, headers: { Authorization: `Bearer ${token}` } });
  const OfPage = class extends WebSocket {
    constructor(url) { super(url, ["acp.v1", `bearer.${token}`], { origin }); }
  };
  return createWebSocketStream(url, { WebSocket: OfPage });
}

async function asClient(url, token, cwd, ...origins) {
  for (const origin of [null, ...origins]) {
    const found = await talk(connectTo(url, token, origin), cwd).catch((error) => ({ failed: String(error) }));
    console.log(JSON.stringify(found));
  }
}

async function talk(stream, cwd) {
  const said = [];
  const app = client({ name: "interop" }).onNotification(methods.client.session.update, ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") said.push(params.update.content.text);
  });
  return await app.connectWith(stream, async (connection) => {
    await connection.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await connection.request(methods.agent.session.new, { cwd, mcpServers: [] });
    await connection.notify("$/ping", {}); // acp-ui does so to keep the connection
    const prompt = [{ type: "text", text: "/roots" }];
    const { stopReason } = await connection.request(methods.agent.session.prompt, { sessionId, prompt });
    return { sessionId, stopReason, said: said.join("") };
  });
}

// open calls work with a connection and what its client is shown. The client answers questions with
// an option, or not at all.
async function open(url, token, option, work) {
  const shown = { user: [], agent: [], asked: 0 };
  const stream = connectTo(url, token);
  const app = client({ name: "interop" })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if (update.sessionUpdate === "agent_message_chunk") shown.agent.push(update.content.text);
      if (update.sessionUpdate === "user_message_chunk") shown.user.push(update.content.text);
    })
    .onRequest(methods.client.session.requestPermission, () => {
      shown.asked++;
      return option ? { outcome: { outcome: "selected", optionId: option } } : new Promise(() => {});
    });
  await app.connectWith(stream, async (connection) => {
    await connection.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    await work(connection, shown);
  });
}

async function asWindows(url, token, cwd) {
  const until = async (holds) => {
    while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
  };
  await open(url, token, null, (desk, onDesk) => open(url, token, "yes", async (laptop, onLaptop) => {
    const { sessionId } = await desk.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const say = async (connection, text) => {
      const prompt = [{ type: "text", text }];
      return (await connection.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason;
    };
    const stopReasons = [await say(desk, "say one")];
    await laptop.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
    const question = {
      sessionId: "$session", toolCall: { toolCallId: "t", title: "T" },
      options: [{ optionId: "yes", name: "Yes", kind: "allow_once" }],
    };
    stopReasons.push(await say(desk, `play session/request_permission ${JSON.stringify(question)}`));
    const waits = say(desk, "wait");
    await until(() => onLaptop.agent.some((text) => text.startsWith("waiting")));
    await laptop.notify(methods.agent.session.cancel, { sessionId });
    stopReasons.push(await waits, await say(laptop, "say two"));
    await until(() => onDesk.agent.includes("two"));
    console.log(JSON.stringify({ stopReasons, desk: onDesk, laptop: onLaptop }));
    process.exit(0); // one question stays without an answer
  }));
}

async function asServer(token) {
  const app = agent({ name: "interop" })
    .onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }))
    .onRequest(methods.agent.session.new, () => ({ sessionId: "theirs" }))
    .onRequest(methods.agent.session.prompt, async ({ params, client }) => {
      const content = { type: "text", text: "you said: " + params.prompt[0].text };
      await client.notify(methods.client.session.update, {
        sessionId: params.sessionId, update: { sessionUpdate: "agent_message_chunk", content },
      });
      return { stopReason: "end_turn" };
    });
  const server = new AcpServer({ agent: app });
  const upgrade = createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true }));
  const http = createServer(createNodeHttpHandler(server)).on("upgrade", (request, socket, head) => {
    if (request.headers.authorization !== `Bearer ${token}`) {
      socket.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\n\r\n");
      return;
    }
    upgrade(request, socket, head);
  });
  http.listen(0, "127.0.0.1", () => console.log(`ws://127.0.0.1:${http.address().port}/acp`));
  process.stdin.resume().on("end", () => process.exit(0));
}
