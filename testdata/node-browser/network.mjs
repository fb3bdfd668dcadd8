import { connect, createServer } from "node:net";
import { once } from "node:events";

// poorNetwork listens on a port of its own and passes everything on to another one of this machine,
// each part as many milliseconds later as its member late says. hold keeps what comes from one side,
// "browser" or "server", until release is called; cut ends all connections, loses what was kept, and
// refuses others until restore.
export async function poorNetwork(port) {
  const network = { late: 0 }, held = {}, sockets = new Set();
  let isCut = false;
  const forward = async (from, to, side) => {
    sockets.add(from);
    try {
      for await (const part of from) {
        await new Promise((resolve) => { setTimeout(resolve, network.late); });
        await held[side]?.ended;
        to.write(part);
      }
      to.end();
    } catch {
      to.destroy();
    }
    sockets.delete(from);
  };
  const server = createServer((browser) => {
    if (isCut) return browser.destroy();
    const upstream = connect(port, "127.0.0.1");
    forward(browser, upstream, "browser");
    forward(upstream, browser, "server");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const release = () => {
    for (const side in held) {
      held[side].end();
      delete held[side];
    }
  };
  return Object.assign(network, {
    port: server.address().port,
    hold: (side) => {
      held[side] = {};
      held[side].ended = new Promise((resolve) => { held[side].end = resolve; });
    },
    release,
    cut: () => {
      isCut = true;
      for (const socket of sockets) socket.destroy();
      release();
    },
    restore: () => { isCut = false; },
    close: () => server.close(),
  });
}
