/** A process that starts a confined one, sends its id, and waits to be killed. */
import { spawn } from "node:child_process"
import { readFile } from "node:fs/promises"
import { confine } from "#server/platform/workerd/command"
import { findPrograms, ownUsers } from "#server/platform/workerd/programs"

const programs = await findPrograms()
const uid = programs.hasOwnUsers ? ownUsers.first : undefined
const confinement = { uid, dataBytes: 2 ** 30, openFiles: 64, threads: 16, fileBytes: 0 }
const [file, ...args] = confine(programs, confinement, ["/bin/sleep", "1000"])
const child = spawn(file, args, { stdio: ["ignore", "pipe", "ignore"], env: {} })
child.once("exit", (code, signal) => {
  throw new Error(`The confined process ended: ${code ?? signal}`)
})
// The death signal is set before the program runs, whose name then shows.
child.once("spawn", () => {
  const timer = setInterval(async () => {
    const name = await readFile(`/proc/${child.pid}/comm`, "utf8")
    if (name.trim() !== "sleep") return
    clearInterval(timer)
    process.send?.(child.pid)
  }, 10)
})
