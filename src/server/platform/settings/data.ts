/** Settings of stored data: the database, the keys that encrypt secrets, cloud saves and guests. */
import { Redacted, Schema } from "effect"
import { saveLimits } from "#rpc/saves"
import { databaseUrlIssue } from "./deployment.ts"
import { type EnvironmentOf, type Issue, optional, setting } from "./table.ts"
import { bytes, days, isWeakKey, listOf, MasterKey, Secret, whole } from "./values.ts"

/** Default of a setting: days from the end of the last refresh token to the deletion. */
export const guestExpiryDaysDefault = 30

export const database = {
  databaseUrl: optional("DATABASE_URL", Secret)`
    Your Postgres (14 or newer): \`postgres://user:password@host/database\`. Not through a pooler in transaction mode.
    In production, a database on another host needs \`?sslmode=\`. Absent: the service runs one in the data directory.`,
  databaseConnections: setting("SVC_DATABASE_CONNECTIONS", whole(1, 1000), 10)`
    Most connections to Postgres for statements; each process has one more, to listen. See
    [sizing](sizing.md#connections-to-postgres).`,
  lockDatabaseUrl: optional("SVC_LOCK_DATABASE_URL", Secret)`
    A Postgres of its own for the runner list and the shard locks, the same for all runners. Absent: they are in the
    one of \`DATABASE_URL\`. See [sizing](sizing.md#connections-to-postgres).`,
  dataDir: setting("SVC_DATA_DIR", Schema.String, ".svc")`
    The directory of the embedded Postgres, of hosted files and of the development keys.`,
  masterKey: optional("SVC_MASTER_KEY", MasterKey)`
    32 random bytes in base64 (\`openssl rand -base64 32\`), the same for all processes. They encrypt stored secrets.
    Required in production, which refuses a key that is not random; in development the service creates one in the data
    directory.`,
  olderMasterKeys: setting("SVC_OLDER_MASTER_KEYS", listOf(MasterKey), "")`
    Former master keys, comma-separated. They decrypt what was encrypted under them; nothing new is. See
    [backup](backup.md#the-master-key).`
}

export const saves = {
  maxBytes: setting("SVC_SAVE_MAX_BYTES", whole(1, 64 * 1024 * 1024), saveLimits.dataMaxBytes)`
    Most bytes of JSON in a cloud save.`,
  perPlayer: setting("SVC_SAVES_PER_PLAYER", whole(0, 100_000), saveLimits.perPlayer)`
    Most cloud saves of a player.`,
  guestBytes: setting("SVC_GUEST_SAVE_BYTES", bytes, saveLimits.guestBytes)`
    Most bytes of all cloud saves of a guest. See [saves](../guides/saves-and-stats.md#storage).`,
  environmentBytes: setting("SVC_ENVIRONMENT_SAVE_BYTES", bytes, saveLimits.environmentBytes)`
    Most bytes of all cloud saves of an environment. What is written within ten seconds may exceed it. See
    [saves](../guides/saves-and-stats.md#storage).`
}

export const guests = {
  guestExpiryDays: setting("SVC_GUEST_EXPIRY_DAYS", days, guestExpiryDaysDefault)`
    Guests who cannot come back, since their last refresh token has expired, are deleted with all their data after
    this many days more. \`0\`: never.`
}

interface Environment extends EnvironmentOf<typeof database> {
  readonly NODE_ENV: string
}

const masterKeyIssue = (key: Redacted.Redacted<Uint8Array> | undefined): string | undefined => {
  if (key === undefined) return "is required in production; make one with: openssl rand -base64 32"
  return isWeakKey(Redacted.value(key))
    ? "is not random: anybody can guess it. Make one with: openssl rand -base64 32. If it has " +
        "encrypted secrets already, move it to SVC_OLDER_MASTER_KEYS"
    : undefined
}

export const databaseIssues = (env: Environment): ReadonlyArray<Issue> => {
  const production = env.NODE_ENV === "production"
  const names = ["DATABASE_URL", "SVC_LOCK_DATABASE_URL"] as const
  const urls = names.flatMap((name): ReadonlyArray<Issue> => {
    const url = env[name]
    const issue = url === undefined ? url : databaseUrlIssue(Redacted.value(url), production)
    return issue === undefined ? [] : [{ path: [name], issue }]
  })
  const keyIssue = production ? masterKeyIssue(env.SVC_MASTER_KEY) : undefined
  return keyIssue === undefined ? urls : [{ path: ["SVC_MASTER_KEY"], issue: keyIssue }, ...urls]
}
