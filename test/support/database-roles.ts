/** A Postgres of the distribution with the roles of `deploy/roles.sql`, for tests of what runs in them. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { Effect } from "effect"
import { runClient, startServer } from "./debian-postgres.ts"

const execute = promisify(execFile)
const file = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** Runs a program of the service with a database; returns its exit code and output. */
export const runOn = (databaseUrl: string, env: Readonly<Record<string, string>>, words: string) =>
  Effect.promise(() =>
    execute("node", words.split(" "), {
      cwd: file("."),
      env: { PATH: `${file("node_modules/.bin")}:/usr/bin:/bin`, ...env, DATABASE_URL: databaseUrl }
    }).then(
      ({ stderr, stdout }) => ({ code: 0, output: stdout + stderr }),
      (error: { readonly code: number; readonly stdout: string; readonly stderr: string }) => ({
        code: error.code,
        output: error.stdout + error.stderr
      })
    )
  )

/** A server with an empty database, and statements that any role may send there. */
export const makeDatabase = Effect.fnUntraced(function* (bin: string) {
  const server = yield* startServer(bin)
  const as = (role: string) => `${server.replace("svc@", `${role}@`)}/svc`
  const sql = (role: string, statement: string) =>
    Effect.map(
      runClient(bin, "psql", as(role), "-v", "ON_ERROR_STOP=1", "-Atc", statement),
      ({ stdout }) => stdout.trim()
    )
  const refused = (role: string, statement: string) =>
    Effect.map(Effect.flip(Effect.sandbox(sql(role, statement))), String)
  const passwords = ["-v", "owner_password=o'ne", "-v", "app_password=two"]
  const roles = file("deploy/roles.sql")
  const makeRoles = runClient(bin, "psql", as("svc"), ...passwords, "-f", roles)
  yield* runClient(bin, "psql", `${server}/postgres`, "-c", "create database svc")
  return { as, makeRoles, refused, sql }
})
