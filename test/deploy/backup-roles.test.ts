/**
 * Backup, verification, restore and migration in exactly the roles that `compose.yaml` and
 * `deploy/kubernetes.yaml` give their containers.
 * @module-tag long
 */
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import { at } from "#testing/players"
import { startRunner } from "#testing/runners"
import { makeDatabase, runOn } from "../support/database-roles.ts"
import { needsPrograms, programs, runClient } from "../support/debian-postgres.ts"
import { masterKeyOf } from "../support/master-keys.ts"
import { play } from "../support/restorable-data.ts"
import { targetOf } from "../support/runner-target.ts"
import { dataFolder } from "../support/data-folder.ts"

const compose: unknown = parse(
  readFileSync(new URL("../../compose.yaml", import.meta.url), "utf8"),
  { merge: true }
)

/** The role of a container of `compose.yaml`. */
const roleOf = (service: string) => {
  const url = at(compose, "services", service, "environment", "DATABASE_URL")
  return /^postgres:\/\/(\w+):/.exec(String(url))?.[1] ?? ""
}

const temporaryFolder = dataFolder("backup-roles-")

const program = "src/server/backup/main.ts"
const masterKey = masterKeyOf(5)

/** A service in the roles of a deployment, with data of a player. */
const startDeployment = Effect.fnUntraced(function* (bin: string) {
  const { as, makeRoles, sql } = yield* makeDatabase(bin)
  yield* makeRoles
  const runner = roleOf("runner-1")
  const unowned = yield* runOn(as(runner), {}, "src/server/migrate.ts")
  assert.strictEqual(unowned.code, 1, unowned.output)
  assert.match(unowned.output, /does not own the tables, so nothing was migrated/)
  const migrated = yield* runOn(as(roleOf("migrate")), {}, "src/server/migrate.ts")
  assert.strictEqual(migrated.code, 0, migrated.output)
  assert.match(migrated.output, /at migration \d+/)
  const dataDir = yield* temporaryFolder
  const env = { SVC_DATA_DIR: dataDir, SVC_MASTER_KEY: masterKey }
  const started = yield* startRunner({ databaseUrl: as(runner), dataDir, env })
  const target = yield* targetOf(dataDir, started.url)
  yield* play(target)
  return { as, env, makeRoles, sql, stop: started.stop }
})

describe(`the roles of a deployment${needsPrograms}`, () => {
  it.live.skipIf(programs === undefined)(
    "saves all rows in the role of the backup job, verifies them in a scratch schema, and restores as the owner",
    () =>
      Effect.gen(function* () {
        const bin = programs ?? ""
        const { as, env, sql, stop } = yield* startDeployment(bin)
        const folder = yield* temporaryFolder
        const saved = join(folder, "saved")

        const save = yield* runOn(as(roleOf("backup")), env, `${program} save ${saved} --json`)
        assert.strictEqual(save.code, 0, save.output)
        const tables = Number(at(JSON.parse(save.output), "tables"))
        assert.strictEqual(
          (yield* Effect.promise(() => readdir(join(saved, "database")))).length,
          tables
        )
        assert.isAbove(Number(at(JSON.parse(save.output), "rows")), 20)

        const scratch = as(roleOf("migrate"))
        const verify = (backup: string) =>
          runOn("", env, `${program} verify ${backup} --database ${scratch}`)
        const verified = yield* verify(saved)
        assert.deepStrictEqual(
          [verified.code, verified.output.startsWith("Verified ")],
          [0, true],
          verified.output
        )
        const schemas = "select count(*) from pg_namespace where nspname like 'svc_verify%'"
        assert.strictEqual(yield* sql("svc_owner", schemas), "0")

        yield* stop
        const target = as("svc_owner").replace(/svc$/, "restored")
        yield* runClient(bin, "psql", as("svc"), "-c", "create database restored owner svc_owner")
        const restored = yield* runOn(
          target,
          { ...env, SVC_DATA_DIR: folder },
          `${program} restore ${saved}`
        )
        assert.strictEqual(restored.code, 0, restored.output)
        const again = yield* runOn(target, env, `${program} save ${join(folder, "again")} --json`)
        assert.strictEqual(
          at(JSON.parse(again.output), "rows"),
          at(JSON.parse(save.output), "rows")
        )
      }).pipe(Effect.scoped)
  )

  it.live.skipIf(programs === undefined)(
    "fails, with the remedy, where a role sees another schema or may not restore",
    () =>
      Effect.gen(function* () {
        const bin = programs ?? ""
        const { as, env, makeRoles, sql, stop } = yield* startDeployment(bin)
        const folder = yield* temporaryFolder
        const saved = join(folder, "saved")
        const save = yield* runOn(as("svc_owner"), env, `${program} save ${saved}`)
        assert.strictEqual(save.code, 0, save.output)
        yield* stop

        const other = yield* runOn(as("svc_app"), env, `${program} restore ${saved}`)
        assert.strictEqual(other.code, 1)
        assert.match(other.output, /does not own the tables: restore as their owner/)

        // A role of its own, with a list of migrations and nothing else in its schema.
        yield* sql("svc_app", "create table svc_app.migrations as select * from public.migrations")
        const empty = yield* runOn(as("svc_app"), env, `${program} save ${join(folder, "empty")}`)
        assert.strictEqual(empty.code, 1, empty.output)
        assert.match(empty.output, /lacks \d+ tables of it \(audit, .*DATABASE_URL/s)
        yield* sql("svc_app", "drop table svc_app.migrations")
        yield* makeRoles
      }).pipe(Effect.scoped)
  )
})
