// A client of ACP over WebSocket, which connects again by itself.

// Connection keeps a connection of a user, whom a proxy sends to the same server each time. It is opened with what proof returns. It calls connected once it
// can be used, each time; lost when it cannot; asked for each request of the server, and told for each notification.
export class Connection {
  #socket;
  #next = 1;
  #calls = new Map();
  #pause = 1000;
  #handlers;
  #user;
  #proof;
  open = false;

  constructor(user, proof, handlers) {
    this.#user = user;
    this.#proof = proof;
    this.#handlers = handlers;
    this.#connect();
    // A phone that wakes up does not wait.
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#wake?.(); });
    addEventListener("online", () => this.#wake?.());
  }

  #wake;

  #connect() {
    const socket = this.#socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/acp?user=${encodeURIComponent(this.#user)}`, ["acp.v1", `proof.${this.#proof()}`]);
    socket.onopen = async () => {
      try {
        const given = await this.#send("initialize", {
          protocolVersion: 1, clientCapabilities: { elicitation: { form: {} }, _meta: { "acp-agent": { turnEnds: true } } },
          clientInfo: { name: "acp-agent-page", version: "1" },
        });
        this.open = true;
        this.#pause = 1000;
        this.#handlers.connected(given);
      } catch {
        socket.close();
      }
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = () => {
      this.open = false;
      for (const { reject } of this.#calls.values()) reject(new Lost());
      this.#calls.clear();
      this.#handlers.lost();
      const again = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        this.#connect();
      };
      const timer = setTimeout(again, this.#pause);
      this.#wake = again;
      this.#pause = Math.min(2 * this.#pause, 30000);
    };
  }

  #receive(message) {
    if (message.method === undefined) {
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      if (message.error) call?.reject(Object.assign(new Error(message.error.message), { code: message.error.code }));
      else call?.resolve(message.result);
    } else if (message.id === undefined) this.#handlers.told(message.method, message.params);
    else if (!this.#handlers.asked(message.id, message.method, message.params)) {
      this.#write({ id: message.id, error: { code: -32601, message: "this page does not offer that" } });
    }
  }

  #write(message) {
    this.#socket.send(JSON.stringify({ jsonrpc: "2.0", ...message }));
  }

  #send(method, params) {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#calls.set(id, { resolve, reject });
      this.#write({ id, method, params });
    });
  }

  // call sends a request and returns its result. It fails with Lost if the connection is lost; then
  // nobody knows whether the request was received.
  call(method, params) {
    return this.open ? this.#send(method, params) : Promise.reject(new Lost());
  }

  // notify sends a notification.
  notify(method, params) {
    if (this.open) this.#write({ method, params });
  }

  // answer answers a request of the server on this connection. It returns whether that was possible.
  answer(id, result) {
    if (this.open) this.#write({ id, result });
    return this.open;
  }
}

// Lost is the error of a request whose connection is lost.
export class Lost extends Error {
  constructor() {
    super("The connection was lost.");
  }
}
