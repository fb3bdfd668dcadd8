#!/usr/bin/env node
// Starts the program of the package for this platform, with the same arguments and streams.
"use strict";

const { spawn } = require("node:child_process");

const name = `@acp-agent/${process.platform}-${process.arch}`;
const program = process.platform === "win32" ? "acp-agent.exe" : "acp-agent";

let path;
try {
	path = require.resolve(`${name}/bin/${program}`);
} catch {
	console.error(
		`acp-agent: the package ${name} is not installed. If it exists for your platform, install ` +
			"acp-agent again without --omit=optional; otherwise build it from source: " +
			"https://github.com/acp-agent/acp-agent",
	);
	process.exit(1);
}

const child = spawn(path, process.argv.slice(2), { stdio: "inherit", windowsHide: true });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
	process.on(signal, () => child.kill(signal)); // and wait for the program to end in its own way
}
child.on("error", (error) => {
	console.error(`acp-agent: cannot start ${path}: ${error.message}`);
	process.exit(1);
});
child.on("exit", (code, signal) => {
	if (signal === null) {
		process.exit(code);
	}
	process.removeAllListeners(signal);
	process.kill(process.pid, signal);
});
