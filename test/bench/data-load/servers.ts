/** The servers of the data benchmark, both on one Postgres: the service's embedded one. */
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { NodeServices } from "@effect/platform-node"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Exit, Redacted, Scope } from "effect"
import * as Schema from "effect/Schema"
import { embeddedPostgres } from "#server/platform/postgres/embedded"
import { call } from "../many/service.ts"
import { freePort, launchServer, type RunningServer } from "../machine/process.ts"
import { startPeer } from "../servers/peer-packages.ts"

const main = fileURLToPath(new URL("../../../src/server/main.ts", import.meta.url))

/** Eight stats that sum, and the most reports that a player may send. */
const config = {
  features: { saves: true, stats: true },
  stats: Array.from({ length: 8 }, (_, index) => ({ key: `stat_${index}` })),
  integrity: { stats: { maxSubmitsPerMinute: 600 } }
}

const DevKeys = Schema.fromJsonString(
  Schema.Struct({
    development: Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })
  })
)

const Environments = Schema.Array(Schema.Struct({ id: Schema.String }))

const environmentOf = (url: Redacted.Redacted): Promise<string> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* PgConnection.make({ url })
        const { rows } = yield* session.query(
          "select id from environments where name = 'development'"
        )
        const [environment] = Schema.decodeUnknownSync(Environments)(rows)
        return environment?.id ?? ""
      })
    )
  )

export interface Server extends RunningServer {
  readonly name: string
}

async function startOurs(
  core: number | undefined,
  dataDir: string,
  url: Redacted.Redacted
): Promise<RunningServer> {
  const port = await freePort()
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("SVC_") && name !== "NODE_ENV"
  )
  const env = {
    ...Object.fromEntries(inherited),
    HOST: "127.0.0.1",
    PORT: `${port}`,
    DATABASE_URL: Redacted.value(url),
    SVC_DATA_DIR: dataDir,
    SVC_THROTTLES: "off"
  }
  const server = await launchServer({ script: main, core, port, env })
  const keys = Schema.decodeUnknownSync(DevKeys)(
    await readFile(join(dataDir, "dev-keys.json"), "utf8")
  ).development
  await call("PUT", `${server.target.url}/v1/config`, { "x-svc-key": keys.secretKey }, config)
  return { ...server, target: { ...server.target, key: keys.publishableKey } }
}

/** Starts the service and the bare handlers beside it. */
export async function startServers(
  core: number | undefined,
  stack: AsyncDisposableStack
): Promise<ReadonlyArray<Server>> {
  const dataDir = await mkdtemp(join(tmpdir(), "bench-"))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  // Postgres may run as another user than the service and has to get in.
  await chmod(dataDir, 0o755)
  const scope = Scope.makeUnsafe()
  stack.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const { url } = await Effect.runPromise(
    Scope.provide(embeddedPostgres({ dataDir }), scope).pipe(Effect.provide(NodeServices.layer))
  )
  const ours = await startOurs(core, dataDir, url)
  stack.defer(ours.stop)
  const args = [Redacted.value(url), await environmentOf(url)]
  const fastify = await startPeer("data-fastify.mjs", core, args)
  stack.defer(fastify.stop)
  return [
    { ...ours, name: "ours" },
    { ...fastify, name: "fastify + pg" }
  ]
}
