// The official TypeScript client and server over WebSocket.
//
//   node websocket.mjs client URL TOKEN CWD    uses the server at URL, and prints what it found as JSON
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
await (role === "client" ? asClient(...args) : asServer(...args));

async function asClient(url, token, cwd) {
  const stream = createWebSocketStream(url, { WebSocket, headers: { Authorization: `Bearer ${token}` } });
  const said = [];
  const app = client({ name: "interop" }).onNotification(methods.client.session.update, ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") said.push(params.update.content.text);
  });
  await app.connectWith(stream, async (connection) => {
    await connection.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
    const { sessionId } = await connection.request(methods.agent.session.new, { cwd, mcpServers: [] });
    const prompt = [{ type: "text", text: "/roots" }];
    const { stopReason } = await connection.request(methods.agent.session.prompt, { sessionId, prompt });
    console.log(JSON.stringify({ sessionId, stopReason, said: said.join("") }));
  });
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
