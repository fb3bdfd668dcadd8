import { writeSync } from "node:fs";

/** A stream of bytes that passes on what it gets, and writes each line of it, marked, to a file. */
export function recorder(file, mark) {
  let rest = Buffer.alloc(0);
  return new TransformStream({
    transform(chunk, out) {
      rest = Buffer.concat([rest, chunk]);
      for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) {
        writeSync(file, Buffer.concat([Buffer.from(mark), rest.subarray(0, end + 1)]));
      }
      out.enqueue(chunk);
    },
    flush() {
      if (rest.length > 0) writeSync(file, Buffer.concat([Buffer.from(mark), rest, Buffer.from("\n")]));
    },
  });
}
