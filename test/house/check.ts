/**
 * `npm run check`: runs the checks of format, lint, types, dead code and the house rules side by side, and
 * prints the output of each when it ends.
 */
import { spawn } from "node:child_process"
import { text } from "node:stream/consumers"

const scripts = ["types", "house", "unused", "lint", "format:check"]

/** Runs a script of `package.json`, prints its output, and returns whether it succeeded. */
const run = async (script: string): Promise<boolean> => {
  const child = spawn(process.execPath, ["--run", script], { stdio: ["ignore", "pipe", "pipe"] })
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve))
  const [out, problems, code] = await Promise.all([text(child.stdout), text(child.stderr), exit])
  process.stdout.write(`\n${script}: ${code === 0 ? "ok" : "failed"}\n${out}${problems}`)
  return code === 0
}

const results = await Promise.all(scripts.map(run))
if (results.includes(false)) process.exitCode = 1
