/**
 * The demo project. On an empty database outside production, the first process creates the project
 * `demo` and enables every offered feature in its development environment. The plain-text keys and the
 * developer's password are only in `<data dir>/dev-keys.json`. The process writes the file before the
 * transaction commits, so a committed demo always has its key file. The service seeds nothing in
 * production.
 */
import { DateTime, Effect, FileSystem, Layer, Option, Path, Record, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { featureTable } from "#rpc/config-document/features"
import { newId } from "#rpc/ids"
import { DeveloperRepository } from "#sql/developers/repository"
import { ProjectRepository } from "#sql/projects/repository"
import { awaitDatabase, isStartError } from "#server/platform/database-start"
import { Passwords } from "#server/platform/passwords"
import { randomSecret } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { Configs } from "../config/service.ts"
import { announceSetupToken } from "../developers/setup-token.ts"
import { demoEmail } from "../developers/sign-in-links.ts"
import { Environments } from "./environments.ts"

const Keys = Schema.Struct({ publishableKey: Schema.String, secretKey: Schema.String })

/** Content of `dev-keys.json`, which tools and tests read; `project` is the project's id. */
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

/** Key of the advisory lock that serializes seeding between processes. */
export const seedLock = 4_872_113

const createDeveloper = Effect.gen(function* () {
  const developers = yield* DeveloperRepository
  const passwords = yield* Passwords
  const password = yield* randomSecret
  const id = yield* newId.developer
  yield* developers.insert({
    id,
    email: demoEmail,
    name: null,
    passwordHash: yield* passwords.hash(password),
    createdAt: yield* DateTime.now
  })
  return { id, email: demoEmail, password }
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
    environment: "development",
    document: { version: 1, features: offered },
    pushedBy: "system"
  })
  const devKeys: DevKeys = { baseUrl: settings.baseUrl, project: projectId, ...keys, developer }
  return devKeys
})

const write = Effect.fnUntraced(function* (file: string, keys: DevKeys) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Schema.encodeEffect(DevKeysText)(keys)
  const temporaryFile = `${file}.new`
  yield* fs.writeFileString(temporaryFile, `${text}\n`, { mode: 0o600 })
  yield* fs.rename(temporaryFile, file)
})

/** Updates `baseUrl` in the key file, because tools read the service's address from it. */
const updateBaseUrl = Effect.fnUntraced(function* (file: string) {
  const { baseUrl, dataDir } = yield* Settings
  const fs = yield* FileSystem.FileSystem
  const stored = yield* Effect.option(
    Effect.flatMap(fs.readFileString(file), Schema.decodeEffect(DevKeysText))
  )
  if (Option.isNone(stored)) {
    return yield* Effect.logInfo(
      `The database already has projects, and ${dataDir} has no readable ${fileName}. Find the demo ` +
        `keys in the data directory of the process that created the project.`
    )
  }
  if (stored.value.baseUrl !== baseUrl) yield* write(file, { ...stored.value, baseUrl })
  yield* Effect.logInfo(`Demo project keys: ${file}`)
})

const seed = Effect.gen(function* () {
  const { dataDir, production } = yield* Settings
  if (production) return yield* announceSetupToken
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
  yield* updateBaseUrl(file)
})

/** Seeds the database before the layers that depend on it start. */
export const SeedLive = Layer.effectDiscard(
  Effect.catchIf(awaitDatabase(seed), (error) => !isStartError(error), Effect.die)
).pipe(Layer.provide(SecureRandom.layerWebCrypto))
