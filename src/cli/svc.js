#!/usr/bin/env node
/**
 * Launcher of `svc`. The CLI is TypeScript, which only recent versions of Node run directly. Under an
 * older version the launcher starts the Node that the package depends on, like `npm start`.
 */
import { spawn } from "node:child_process"
import module from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const oldestMajor = 24
const [major] = process.versions.node.split(".")

if (Number(major) >= oldestMajor && process.features.typescript) {
  // Saves half a second from the second call on. Only the package's owner can write to this directory.
  const cache = new URL("../../node_modules/.cache/svc", import.meta.url)
  module.enableCompileCache(fileURLToPath(cache))
  await import("./main.ts")
} else runWithOwnNode()

function runWithOwnNode() {
  const manifest = module.createRequire(import.meta.url).resolve("node/package.json")
  const node = join(dirname(manifest), module.createRequire(manifest)(manifest).bin.node)
  const self = fileURLToPath(import.meta.url)
  const child = spawn(node, [self, ...process.argv.slice(2)], { stdio: "inherit" })
  // A terminal signals both processes. The child handles the signal, and its exit ends both.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal))
  }
  child.on("error", (error) => {
    process.stderr.write(`svc needs Node ${oldestMajor} or newer (${error.message}): npm ci\n`)
    process.exitCode = 1
  })
  child.on("exit", (code) => {
    process.exitCode = code ?? 1
  })
}
