#!/usr/bin/env node
/**
 * The command `svc`. The CLI is TypeScript that only a Node of today runs as it stands; under an older
 * one this launcher hands over to the Node that the package depends on, as `npm start` does.
 */
import { spawn } from "node:child_process"
import module from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const oldestMajor = 24
const [major] = process.versions.node.split(".")

if (Number(major) >= oldestMajor && process.features.typescript) {
  // Half a second less from the second call on; kept where only who installs the package may write.
  const cache = new URL("../../node_modules/.cache/svc", import.meta.url)
  module.enableCompileCache(fileURLToPath(cache))
  await import("./main.ts")
} else handOver()

function handOver() {
  const manifest = module.createRequire(import.meta.url).resolve("node/package.json")
  const node = join(dirname(manifest), module.createRequire(manifest)(manifest).bin.node)
  const self = fileURLToPath(import.meta.url)
  const child = spawn(node, [self, ...process.argv.slice(2)], { stdio: "inherit" })
  // A terminal sends its signals to both: the child decides, and its end is the end of both.
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
