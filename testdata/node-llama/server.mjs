// Serves a model of random weights with llama.cpp as an OpenAI-compatible server. A grammar makes it call one of the tools that it is offered
// before it answers; what it says has no meaning. Usage:
//
//	node server.mjs WORD...    // the strings that it may give to tools
//
// It prints its address when it is ready, and ends when its input does.
import {mkdtempSync, rmSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {getLlama, LlamaCompletion} from "node-llama-cpp";
import {write} from "./gguf.mjs";

const context = 8192, words = process.argv.slice(2);
const dir = mkdtempSync(join(tmpdir(), "llama"));
const file = join(dir, "random.gguf");
write(file, context);
const llama = await getLlama({build: "never", gpu: false, logLevel: "error"});
const model = await llama.loadModel({modelPath: file});
rmSync(dir, {recursive: true});
const sequence = (await model.createContext({contextSize: context, threads: 1})).getSequence();
const completion = new LlamaCompletion({contextSequence: sequence});

/** constrain returns a schema that llama.cpp can make a grammar of: only the members that are required, and only our words. */
function constrain(schema) {
    switch (schema?.type) {
        case "object":
            return {type: "object", properties: Object.fromEntries(
                (schema.required ?? []).map((name) => [name, constrain(schema.properties?.[name])])
            )};
        case "array":
            return {type: "array", items: constrain(schema.items), minItems: 1, maxItems: 2};
        case "integer": case "number":
            return {enum: [1, 2, 3]}; // others can get very long
        case "boolean":
            return {type: "boolean"};
        default:
            return {enum: schema?.enum ?? words};
    }
}

let seed = 0;

/** generate continues a text, and gives each piece to send. */
async function generate(text, schema, maxTokens, send) {
    const grammar = schema && await llama.createGrammarForJsonSchema(schema);
    const all = await completion.generateCompletion(text, {grammar, maxTokens, temperature: 1, seed: ++seed, onTextChunk: send});
    return grammar ? grammar.parse(all) : all;
}

async function answer(request, send) {
    const text = JSON.stringify(request.messages).slice(-1000); // a token is a byte, and this model learns nothing from more
    const delta = (d) => send({index: 0, delta: d, finish_reason: null});
    const end = (reason) => send({index: 0, delta: {}, finish_reason: reason});
    delta({role: "assistant", content: ""});
    if (!request.tools?.length || request.messages.at(-1).role === "tool") {
        await generate(text, null, 40, (content) => delta({content}));
        return end("stop");
    }
    const tools = Object.fromEntries(request.tools.map((t) => [t.function.name, t.function]));
    const name = await generate(text, {enum: Object.keys(tools)}, 200, () => {});
    const call = (more) => delta({tool_calls: [{index: 0, ...more}]});
    call({id: `call${Date.now()}`, type: "function", function: {name, arguments: ""}});
    await generate(text + name, constrain(tools[name].parameters), 1000, (piece) => call({function: {arguments: piece}}));
    return end("tool_calls");
}

let last = Promise.resolve(); // there is one sequence, so requests wait for each other
const server = createServer((request, response) => {
    const body = [];
    request.on("data", (d) => body.push(d)).on("end", () => {
        last = last.then(async () => {
            response.writeHead(200, {"Content-Type": "text/event-stream"});
            const {model, ...asked} = JSON.parse(Buffer.concat(body).toString());
            const send = (choice) => response.write(`data: ${JSON.stringify({
                id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model, choices: [choice],
            })}\n\n`);
            await answer(asked, send);
            response.end("data: [DONE]\n\n");
        }).catch((e) => {
            console.error(e);
            response.destroy();
        });
    });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit());
