/**
 * Secrets. Keys and tokens that the service issues are 256 random bits, stored as their SHA-256.
 *
 * Secrets that the service must read again (signing keys, providers' credentials) use envelope encryption:
 * AES-256-GCM under a data key, which is encrypted under the master key. The id of the master key comes
 * first, so the master key can be replaced while older ones still decrypt.
 *
 * In production the master key is `SVC_MASTER_KEY`. In development the first start creates one in the
 * data directory.
 */
import { createHmac, createSecretKey, hash, hkdfSync, timingSafeEqual } from "node:crypto"
import {
  Context,
  Effect,
  FileSystem,
  Layer,
  Path,
  type PlatformError,
  Redacted,
  Schema
} from "effect"
import { Aead, SecureRandom } from "effect/crypto"
import { makeDataDirectory } from "./postgres/data-directory.ts"
import { Settings } from "./settings/settings.ts"

/**
 * Error for a stored secret that cannot be decrypted: another master key encrypted it, or it was
 * changed.
 */
export class SecretError extends Schema.TaggedError<SecretError>()("SecretError", {
  message: Schema.String
}) {}

/** SHA-256 in base64url, as secrets are stored. */
export const sha256 = (text: string): string => hash("sha256", text, "base64url")

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url")

/** 256 random bits as 43 characters of base64url. */
export const randomSecret: Effect.Effect<string, never, SecureRandom.SecureRandom> = Effect.flatMap(
  SecureRandom.SecureRandom,
  (random) => Effect.map(random.randomBytes(32), base64url)
)

const keyFile = "master.key"
const nonceBytes = 12
const macBytes = 16
const idCharacters = 8

/** The development key: created at the first start, read at every later one. */
const keyInDataDirectory = Effect.fnUntraced(function* (dataDir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const file = path.join(dataDir, keyFile)
  yield* makeDataDirectory(dataDir)
  const made = Buffer.from(yield* random.randomBytes(32)).toString("base64")
  const draft = `${file}.${yield* random.uuidV4()}`
  yield* fs.writeFileString(draft, made, { mode: 0o600 })
  // Two processes may start at once: the first to link its file decides for both.
  yield* Effect.ignore(fs.link(draft, file))
  yield* fs.remove(draft)
  const bytes = Buffer.from(yield* fs.readFileString(file), "base64")
  if (bytes.length === 32) return new Uint8Array(bytes)
  return yield* new SecretError({
    message: `${file} does not hold 32 bytes in base64. Restore it, or set SVC_MASTER_KEY.`
  })
})

/** Explains a data directory that cannot be used. */
const unusable = (dataDir: string) => (error: PlatformError.PlatformError) =>
  Effect.fail(
    new SecretError({
      message:
        `Failed to use the data directory ${dataDir}: ${error.message}. Run the service as the user ` +
        "that owns it, choose another with SVC_DATA_DIR, or set DATABASE_URL and SVC_MASTER_KEY."
    })
  )

/** Encryption and message authentication under the master key. */
export class Secrets extends Context.Service<
  Secrets,
  {
    /** Encrypts a text. `purpose` is authenticated: decryption needs the same one. */
    readonly seal: (text: string, purpose: string) => Effect.Effect<string>
    readonly open: (sealed: string, purpose: string) => Effect.Effect<string, SecretError>
    /** A keyed MAC of a text, 22 characters, by which the service recognizes its own values. */
    readonly mac: (text: string) => string
    /** The same under each master key, newest first. */
    readonly macs: (text: string) => ReadonlyArray<string>
    readonly hasValidMac: (text: string, mac: string) => boolean
    /** A key for another purpose from each master key (HKDF-SHA-256), newest first. */
    readonly deriveKeys: (purpose: string) => ReadonlyArray<Uint8Array>
  }
>()("server/platform/secrets/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const settings = yield* Settings
      const master =
        settings.masterKey === undefined
          ? yield* keyInDataDirectory(settings.dataDir).pipe(
              Effect.catchTag("PlatformError", unusable(settings.dataDir))
            )
          : Redacted.value(settings.masterKey)
      return yield* makeSecrets(master, settings.olderMasterKeys.map(Redacted.value))
    })
  ).pipe(Layer.provide(Aead.layerWebCrypto))
}

/** Makes a master key with an id that does not reveal it. */
const makeMaster = Effect.fnUntraced(function* (bytes: Uint8Array) {
  // A constant of the key derivation. Another value would invalidate every refresh token.
  const macKey = createSecretKey(createHmac("sha256", bytes).update("marks").digest())
  const mac = (text: string) =>
    base64url(createHmac("sha256", macKey).update(text).digest().subarray(0, macBytes))
  return {
    id: hash("sha256", bytes, "base64url").slice(0, idCharacters),
    key: yield* keyOf(bytes),
    mac
  }
})

const keyOf = (bytes: Uint8Array) => Effect.orDie(Aead.key(Aead.aes256Gcm, bytes))

/** Encrypts and decrypts bytes; a random nonce precedes the ciphertext. */
const makeSealing = Effect.gen(function* () {
  const aead = yield* Aead.Aead
  const random = yield* SecureRandom.SecureRandom
  return {
    newKey: random.randomBytes(32),
    sealUnder: Effect.fnUntraced(function* (key: Aead.Key, bytes: Uint8Array, purpose: string) {
      const nonce = yield* random.randomBytes(nonceBytes)
      const options = { nonce, aad: Buffer.from(purpose) }
      const sealed = yield* Effect.orDie(aead.encrypt(key, bytes, options))
      return base64url(Buffer.concat([nonce, sealed]))
    }),
    openUnder: (key: Aead.Key, sealed: string, purpose: string) => {
      const bytes = Buffer.from(sealed, "base64url")
      const options = { nonce: bytes.subarray(0, nonceBytes), aad: Buffer.from(purpose) }
      return aead.decrypt(key, bytes.subarray(nonceBytes), options)
    }
  }
})

/** The newest master key encrypts; all of them decrypt. */
const makeSecrets = Effect.fnUntraced(function* (
  newest: Uint8Array,
  older: ReadonlyArray<Uint8Array>
) {
  const { newKey, openUnder, sealUnder } = yield* makeSealing
  const master = yield* makeMaster(newest)
  const masters = [master, ...(yield* Effect.forEach(older, makeMaster))]
  const opened = Effect.fnUntraced(function* (sealed: string, purpose: string) {
    const [id, wrapped, body] = sealed.split(".")
    if (wrapped === undefined || body === undefined) {
      // Older format without a data key: encrypted under a master key directly.
      return yield* Effect.firstSuccessOf(masters.map(({ key }) => openUnder(key, sealed, purpose)))
    }
    const sealer = masters.find((one) => one.id === id)
    if (sealer === undefined) return yield* Effect.fail("no such master key")
    const bytes = yield* openUnder(sealer.key, wrapped, purpose)
    return yield* openUnder(yield* keyOf(bytes), body, purpose)
  })
  return Secrets.of({
    seal: Effect.fnUntraced(function* (text, purpose) {
      const bytes = yield* newKey
      const wrapped = yield* sealUnder(master.key, bytes, purpose)
      const body = yield* sealUnder(yield* keyOf(bytes), Buffer.from(text), purpose)
      return `${master.id}.${wrapped}.${body}`
    }),
    open: (sealed, purpose) =>
      opened(sealed, purpose).pipe(
        Effect.map((text) => Buffer.from(text).toString("utf8")),
        Effect.mapError(
          () =>
            new SecretError({
              message:
                `A stored secret (${purpose}) was encrypted under another master key. ` +
                "Set the SVC_MASTER_KEY of the service that made this database."
            })
        )
      ),
    mac: master.mac,
    macs: (text) => masters.map(({ mac }) => mac(text)),
    hasValidMac: (text, given) => {
      const actual = Buffer.from(given)
      return masters.some(({ mac }) => {
        const expected = Buffer.from(mac(text))
        return actual.length === expected.length && timingSafeEqual(actual, expected)
      })
    },
    deriveKeys: (purpose) =>
      [newest, ...older].map((bytes) => new Uint8Array(hkdfSync("sha256", bytes, "", purpose, 32)))
  })
})
