/**
 * The project of the demo games. Outside production, the first start creates it for the developer of
 * the demo project. Each start deploys the games of `docs/demo` to its development environment, if
 * they have changed. A developer who deletes the project keeps it deleted.
 */
import { createHash } from "node:crypto"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Data, Effect, Layer, Option, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { CurrentActor, type EnvironmentCaller } from "#rpc/auth"
import { DeveloperRepository } from "#sql/developers/repository"
import { AppRepository } from "#sql/hosting/apps"
import { ProjectRepository } from "#sql/projects/repository"
import { Configs } from "../features/config/service.ts"
import { makeAddresses } from "../features/hosting/addresses.ts"
import { Blobs } from "../features/hosting/blobs.ts"
import { Deployments } from "../features/hosting/service.ts"
import { Environments } from "../features/projects/environments.ts"
import { demoEmail } from "../features/developers/sign-in-links.ts"
import { seedLock } from "../features/projects/seed.ts"
import { awaitDatabase } from "../platform/database-start.ts"
import { Settings } from "../platform/settings/settings.ts"

const slug = "demo-games"
const app = { slug, name: "development" } as const

const folder = fileURLToPath(new URL("../../../docs/demo/", import.meta.url))

/** The document of the environment, which lies beside the games and is not deployed. */
const configFile = "svc.config.json"
const Document = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))

/** The files of the games. */
const readGames = Effect.sync(() =>
  globSync("**/*.*", { cwd: folder })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path !== configFile)
    .toSorted()
    .map((path) => {
      const bytes = readFileSync(join(folder, path))
      const sha256 = createHash("sha256").update(bytes).digest("hex")
      return { path, sha256, size: bytes.byteLength, bytes }
    })
)

/** Creates the project, unless there is one or was one. */
const createProject = Effect.gen(function* () {
  const projects = yield* ProjectRepository
  const developers = yield* DeveloperRepository
  const environments = yield* Environments
  const configs = yield* Configs
  const developer = yield* developers.findByEmail([demoEmail])
  if (Option.isNone(developer) || (yield* projects.hasSlug(slug))) return
  const owner = developer.value.id
  const { environments: ids } = yield* Effect.orDie(
    environments.createProjectAs(slug, "Demo games", owner)
  )
  const text = readFileSync(join(folder, configFile), "utf8")
  yield* configs.push({
    environmentId: ids.development,
    environment: app.name,
    document: yield* Schema.decodeEffect(Document)(text),
    pushedBy: "system"
  })
})

const toManifest = (files: Effect.Success<typeof readGames>) =>
  files.map(({ path, sha256, size }) => ({ path, sha256, size }))

/** Whether the live version has exactly these files. */
const isLive = Effect.fnUntraced(function* (
  environment: EnvironmentCaller,
  files: Effect.Success<typeof readGames>
) {
  const deployments = yield* Deployments
  const { live } = yield* deployments.hosting(environment, true)
  if (live === null) return false
  const known = yield* deployments.get(environment, live.deploymentId)
  const hashes = (list: ReadonlyArray<{ readonly path: string; readonly sha256: string }>) =>
    list
      .map(({ path, sha256 }) => `${sha256} ${path}`)
      .toSorted()
      .join("\n")
  return hashes(known.files) === hashes(files)
})

const deploy = Effect.fnUntraced(function* (environment: EnvironmentCaller) {
  const deployments = yield* Deployments
  const blobs = yield* Blobs
  const files = yield* readGames
  if (yield* isLive(environment, files)) return
  const created = yield* deployments.create(environment, { files: toManifest(files) })
  const missing = new Set(created.missing)
  for (const { bytes, sha256 } of files) {
    if (missing.has(sha256)) yield* blobs.store(environment, sha256, bytes)
  }
  yield* deployments.finalize(environment, created.deploymentId, true)
})

class DemoError extends Data.TaggedError("DemoError")<{ readonly cause: unknown }> {}

const seedGames = Effect.gen(function* () {
  const { demoGames, features } = yield* Settings
  const needed = ["hosting", "multiplayer", "realtimeChannels"] as const
  if (!demoGames || !needed.every((feature) => features.has(feature))) return
  const sql = yield* SqlClient.SqlClient
  const apps = yield* AppRepository
  yield* sql.withTransaction(
    Effect.andThen(sql`select pg_advisory_xact_lock(${seedLock}::bigint)`, createProject)
  )
  const environment = yield* apps.bySlug(app)
  if (Option.isSome(environment)) yield* deploy(environment.value)
}).pipe(
  awaitDatabase,
  Effect.provideService(CurrentActor, { kind: "system", id: "system", name: "system" }),
  Effect.mapError((cause) => new DemoError({ cause })),
  // The service is of use without the demo games.
  Effect.catchCause((cause) => Effect.logWarning("Failed to deploy the demo games", cause))
)

/** The address of the demo games; undefined without them. */
export const demoAddress = Effect.map(Settings, ({ baseUrl, demoGames, hosting }) =>
  demoGames
    ? makeAddresses({ baseUrl, domain: hosting.domain }).live(app.slug, app.name)
    : undefined
)

/** Deploys the games when the service starts. */
export const DemoGamesLive = Layer.effectDiscard(seedGames).pipe(
  Layer.provide([Deployments.layer, Blobs.layer])
)
