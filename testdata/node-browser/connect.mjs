// Connects from web pages to acp-agent serve, as web clients of ACP do, and prints what the page got:
// connect.mjs URL TOKEN PAGE...
import { launch } from "./browser.mjs";

const [url, token, ...pages] = process.argv.slice(2);
const browser = await launch();
for (const address of pages) {
  const page = await browser.newPage();
  await page.goto(address);
  const got = await page.evaluate((url, token) => new Promise((resolve) => {
    const socket = new WebSocket(url, ["acp.v1", `bearer.${token}`]);
    socket.onopen = () => socket.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}');
    socket.onmessage = (message) => resolve(message.data);
    socket.onclose = () => resolve("refused");
  }), url, token);
  console.log(`${address}: ${got}`);
}
await browser.close();
