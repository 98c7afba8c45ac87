/** PgBouncer in front of a Postgres of the tests. None on machines without its package. */
import { execFileSync, spawn } from "node:child_process"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted, Schedule } from "effect"
import { freePort } from "#testing/runners"

const hasPgbouncer = (): boolean => {
  try {
    execFileSync("pgbouncer", ["--version"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Why tests that need it do not run here. */
export const skipReason: string | undefined = hasPgbouncer()
  ? undefined
  : "pgbouncer is not installed"

/** It does not run as root. */
const asUser = process.getuid?.() === 0 ? ["-u", "postgres"] : []

const isListening = (port: number) =>
  Effect.callback<void, Error>((resume) => {
    const socket = connect({ port, host: "127.0.0.1" })
    socket.once("connect", () => resume(Effect.void)).once("error", (e) => resume(Effect.fail(e)))
    return Effect.sync(() => void socket.destroy())
  })

/** Starts it for the scope; returns the URL of the same database through it. */
export const startPgbouncer = Effect.fnUntraced(function* (
  database: Redacted.Redacted,
  mode: "session" | "transaction"
) {
  const url = new URL(Redacted.value(database))
  const port = yield* freePort
  const name = url.pathname.slice(1)
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "pgbouncer-"))),
    (made) => Effect.promise(() => rm(made, { recursive: true, force: true }))
  )
  const file = join(folder, "pgbouncer.ini")
  const password = decodeURIComponent(url.password)
  const text = `
[databases]
${name} = host=${url.hostname} port=${url.port} user=${url.username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
`
  yield* Effect.promise(async () => {
    await writeFile(file, text, { mode: 0o644 })
    await chmod(folder, 0o755)
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => spawn("pgbouncer", [...asUser, file], { stdio: "ignore" })),
    (child) => Effect.sync(() => child.kill())
  )
  yield* Effect.retry(isListening(port), { times: 200, schedule: Schedule.spaced(50) })
  return Redacted.make(`postgres://${url.username}@127.0.0.1:${port}/${name}`)
})
