/** What a confined process is, and that it dies with the process that started it. */
import { execFileSync, fork, spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { confine } from "#server/platform/workerd/command"
import { findPrograms, ownUsers } from "#server/platform/workerd/programs"
import { eventually } from "../../support/voice-peer.ts"

const confinement = { dataBytes: 2 ** 30, openFiles: 64, threads: 16, fileBytes: 2 ** 20 }

/** Position of the niceness in `/proc/self/stat`, after the name. */
const nicenessField = 16

const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(
      execFileSync("cat", [`/proc/${pid}/status`], { encoding: "utf8", stdio: "pipe" })
    )
  } catch {
    return false
  }
}

describe("a confined process", () => {
  it("confines a process: no capabilities, bare environment, own user, low priority, bounded resources", async () => {
    const programs = await findPrograms()
    const uid = programs.hasOwnUsers ? ownUsers.first : undefined
    const read = [
      "/bin/cat",
      "/proc/self/status",
      "/proc/self/limits",
      "/proc/self/stat",
      "/proc/self/environ"
    ]
    const [file, ...args] = confine(programs, { ...confinement, uid }, read)
    const { stdout } = spawnSync(file, args, { env: { TZ: "UTC" }, encoding: "utf8" })
    assert.match(stdout, /^CapEff:\t0+$/m)
    assert.match(stdout, /^NoNewPrivs:\t1$/m)
    assert.match(stdout, /^Max open files +64 +64 /m)
    assert.match(stdout, /^Max data size +1073741824 /m)
    assert.match(stdout, /^Max core file size +0 /m)
    assert.match(stdout, /^Max file size +1048576 /m)
    const [, stat = ""] = /^\d+ \(cat\) (.*)$/m.exec(stdout) ?? []
    assert.strictEqual(stat.split(" ")[nicenessField], "5")
    assert.match(stdout, /TZ=UTC\0$/)
    assert.notMatch(stdout, /PATH=/)
    if (uid !== undefined) {
      assert.match(stdout, new RegExp(`^Uid:\\t${uid}\\t${uid}\\t`, "m"))
      assert.match(stdout, /^Groups:\t *$/m)
      assert.match(stdout, /^CapBnd:\t0+$/m)
    }
  })

  it.effect(
    "dies with the service, however that ends",
    () =>
      Effect.gen(function* () {
        const starter = fileURLToPath(new URL("../../support/confined-starter.ts", import.meta.url))
        const service = fork(starter, [], { stdio: ["ignore", "ignore", "inherit", "ipc"] })
        const pid = yield* Effect.promise(
          () =>
            new Promise<number>((resolve, reject) => {
              service.once("message", (it) => resolve(Number(it)))
              service.once("exit", (code) => reject(new Error(`The starter ended: ${code}`)))
            })
        )
        assert.isTrue(isAlive(pid))
        service.kill("SIGKILL")
        yield* eventually(() => !isAlive(pid), "the confined process ends")
      }),
    { timeout: 60_000 }
  )
})
