/** Raises the limit of open files of this process, by running it again under `prlimit`. */
import { spawnSync } from "node:child_process"
import { openFilesLimit } from "./report.ts"

/**
 * Runs the program again with a limit of so many open files, where this process may have them; else goes on
 * with what there is.
 */
export function raiseOpenFiles(wanted: number): void {
  if (openFilesLimit() >= wanted) return
  const limit = `--nofile=${wanted}:${wanted}`
  if (spawnSync("prlimit", [limit, "true"]).status !== 0) return
  const command = [limit, process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  const { status } = spawnSync("prlimit", command, { stdio: "inherit" })
  process.exit(status ?? 1)
}
