// A language model of random weights in the format of llama.cpp: too small to make sense, but loaded, tokenised, sampled and constrained by
// grammars like any other.
import {writeFileSync} from "node:fs";

const dim = 32, layers = 1, heads = 2, hidden = 64;
const [U32, F32, STRING, ARRAY, I32] = [4, 6, 8, 9, 5]; // types of metadata

/** write writes the model to a file. */
export function write(path, context) {
    const tokens = ["<unk>", "<s>", "</s>"], types = [2, 3, 3];
    for (let i = 0; i < 256; i++) {
        tokens.push(`<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
        types.push(6);
    }
    tokens.push("\u2581"); // a space
    types.push(1);

    const metadata = [
        ["general.architecture", STRING, "llama"], ["general.name", STRING, "random"], ["general.alignment", U32, 32],
        ["llama.context_length", U32, context], ["llama.embedding_length", U32, dim], ["llama.block_count", U32, layers],
        ["llama.feed_forward_length", U32, hidden], ["llama.attention.head_count", U32, heads], ["llama.vocab_size", U32, tokens.length],
        ["llama.rope.dimension_count", U32, dim / heads], ["llama.attention.layer_norm_rms_epsilon", F32, 1e-5],
        ["tokenizer.ggml.model", STRING, "llama"], ["tokenizer.ggml.tokens", ARRAY, [STRING, tokens]],
        ["tokenizer.ggml.scores", ARRAY, [F32, tokens.map((_, i) => -i)]], ["tokenizer.ggml.token_type", ARRAY, [I32, types]],
        ["tokenizer.ggml.unknown_token_id", U32, 0], ["tokenizer.ggml.bos_token_id", U32, 1], ["tokenizer.ggml.eos_token_id", U32, 2],
    ];
    const tensors = [["token_embd.weight", dim, tokens.length], ["output_norm.weight", dim], ["output.weight", dim, tokens.length]];
    for (let i = 0; i < layers; i++) {
        for (const [name, ...shape] of [
            ["attn_norm", dim], ["attn_q", dim, dim], ["attn_k", dim, dim], ["attn_v", dim, dim], ["attn_output", dim, dim],
            ["ffn_norm", dim], ["ffn_gate", dim, hidden], ["ffn_up", dim, hidden], ["ffn_down", hidden, dim],
        ]) {
            tensors.push([`blk.${i}.${name}.weight`, ...shape]);
        }
    }

    const parts = [];
    const number = {
        [U32]: (b, v) => b.writeUInt32LE(v), [I32]: (b, v) => b.writeInt32LE(v), [F32]: (b, v) => b.writeFloatLE(v),
    };
    const long = (v) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(v)); parts.push(b); };
    const value = (type, v) => {
        if (type === STRING) {
            long(Buffer.byteLength(v));
            parts.push(Buffer.from(v));
        } else if (type === ARRAY) {
            value(U32, v[0]);
            long(v[1].length);
            v[1].forEach((each) => value(v[0], each));
        } else {
            const b = Buffer.alloc(4);
            number[type](b, v);
            parts.push(b);
        }
    };

    parts.push(Buffer.from("GGUF"));
    value(U32, 3);
    long(tensors.length);
    long(metadata.length);
    for (const [name, type, v] of metadata) {
        value(STRING, name);
        value(U32, type);
        value(type, v);
    }
    let offset = 0;
    for (const [name, ...shape] of tensors) {
        value(STRING, name);
        value(U32, shape.length);
        shape.forEach(long);
        value(U32, 0); // 32-bit floats
        long(offset);
        offset += shape.reduce((a, b) => a * b) * 4; // a multiple of the alignment
    }
    const head = Buffer.concat(parts);
    let seed = 1;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647 - 0.5;
    const weights = Float32Array.from({length: offset / 4}, random);
    writeFileSync(path, Buffer.concat([head, Buffer.alloc((32 - head.length % 32) % 32), Buffer.from(weights.buffer)]));
}
