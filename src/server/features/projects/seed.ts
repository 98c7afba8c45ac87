/**
 * The demo project (design section 7): on an empty database in development, the first process to come
 * up creates the project `demo` with both environments and turns on every feature of the development
 * one. The keys and the developer's password are in plain text only in `<data dir>/dev-keys.json`,
 * which is written before the transaction commits: there is never a demo whose keys nobody has.
 */
import { DateTime, Effect, FileSystem, Layer, Option, Path, Record, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { featureTable } from "#rpc/config-document/features"
import { newId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers"
import { ProjectRepository } from "#sql/projects/repository"
import { Passwords } from "#server/platform/passwords"
import { randomSecret } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { Environments } from "./environments.ts"

const Keys = Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })

/** What tools and tests find in `dev-keys.json`; `project` is the id of the project. */
const DevKeys = Schema.Struct({
  baseUrl: Schema.String,
  project: Schema.String,
  development: Keys,
  production: Keys,
  developer: Schema.Struct({ email: Schema.String, password: Schema.String })
})
type DevKeys = typeof DevKeys.Type

const DevKeysText = Schema.fromJsonString(DevKeys, { space: 2 })

const fileName = "dev-keys.json"
const developerEmail = "demo@localhost"

/** Any number that only the seed uses for its lock. */
const seedLock = 4_872_113

const createDeveloper = Effect.gen(function* () {
  const developers = yield* DeveloperRepository
  const passwords = yield* Passwords
  const password = yield* randomSecret
  const id = yield* newId.developer
  yield* developers.insert({
    id,
    email: developerEmail,
    name: null,
    passwordHash: yield* passwords.hash(password),
    createdAt: yield* DateTime.now
  })
  return { id, email: developerEmail, password }
})

const createDemo = Effect.gen(function* () {
  const settings = yield* Settings
  const environments = yield* Environments
  const configs = yield* Configs
  const { id, ...developer } = yield* createDeveloper
  const { environments: ids, keys, projectId } = yield* environments.createProject("demo", id)
  const offered = Record.map(featureTable, (_, name) => settings.features.has(name))
  yield* configs.push({
    environmentId: ids.development,
    document: { version: 1, features: offered },
    pushedBy: "system"
  })
  const devKeys: DevKeys = { baseUrl: settings.baseUrl, project: projectId, ...keys, developer }
  return devKeys
})

const write = Effect.fnUntraced(function* (file: string, keys: DevKeys) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Schema.encodeEffect(DevKeysText)(keys)
  const draft = `${file}.new`
  yield* fs.writeFileString(draft, `${text}\n`, { mode: 0o600 })
  yield* fs.rename(draft, file)
})

/** The address may have changed since the keys were written; tools read it there. */
const keepAddress = Effect.fnUntraced(function* (file: string) {
  const { baseUrl, dataDir } = yield* Settings
  const fs = yield* FileSystem.FileSystem
  const stored = yield* Effect.option(
    Effect.flatMap(fs.readFileString(file), Schema.decodeEffect(DevKeysText))
  )
  if (Option.isNone(stored)) {
    return yield* Effect.logInfo(
      `This database has its projects already; the keys of the demo were written to ` +
        `${fileName} in the data directory of the process that made them, not to ${dataDir}.`
    )
  }
  if (stored.value.baseUrl !== baseUrl) yield* write(file, { ...stored.value, baseUrl })
  yield* Effect.logInfo(`The keys of the demo project are in ${file}`)
})

/** In production nothing is seeded: somebody must come first, and should be who runs the service. */
const warnOfNobody = Effect.gen(function* () {
  const { baseUrl, signups } = yield* Settings
  const { isEmpty } = yield* DeveloperRepository
  if (signups === "invite" || !(yield* isEmpty)) return
  yield* Effect.logWarning(
    `Nobody has signed up yet. Do it now: POST ${baseUrl}/v1/developers/signup with email and ` +
      "password. Whoever is first makes the first project."
  )
})

const seed = Effect.gen(function* () {
  const { dataDir, production } = yield* Settings
  if (production) return yield* warnOfNobody
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const sql = yield* SqlClient.SqlClient
  const projects = yield* ProjectRepository
  const file = path.join(dataDir, fileName)
  yield* fs.makeDirectory(dataDir, { recursive: true })
  yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql`select pg_advisory_xact_lock(${seedLock}::bigint)`
      if (yield* projects.isEmpty) yield* write(file, yield* createDemo)
    })
  )
  yield* keepAddress(file)
})

/** Seeds before anything that comes after it in the layers starts. */
export const SeedLive = Layer.effectDiscard(Effect.orDie(seed)).pipe(
  Layer.provide(SecureRandom.layerWebCrypto)
)
