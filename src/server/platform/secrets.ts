/**
 * Secrets: how they are made, remembered and kept. Keys and tokens that the service hands out are
 * 256 random bits and are remembered as their SHA-256; what it must read again (signing keys,
 * providers' credentials) is sealed in an envelope: each text with AES-256-GCM under a key of its own,
 * which is sealed under the master key, and the id of the master key stands before both. So the master
 * key can be replaced: the keys of before still open what they have sealed.
 *
 * In development the master key is made once, in the data directory; in production it comes from
 * `SVC_MASTER_KEY` (design section 6).
 */
import { createHmac, hash, timingSafeEqual } from "node:crypto"
import { Context, Effect, FileSystem, Layer, Path, Redacted, Schema } from "effect"
import { Aead, SecureRandom } from "effect/crypto"
import { Settings } from "./settings/settings.ts"

/** A stored secret cannot be opened: it was sealed under another master key, or changed. */
export class SecretError extends Schema.TaggedError<SecretError>()("SecretError", {
  message: Schema.String
}) {}

/** What is remembered of a secret: its SHA-256 in base64url. */
export const sha256 = (text: string): string => hash("sha256", text, "base64url")

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64url")

/** 256 random bits in 43 characters. */
export const randomSecret: Effect.Effect<string, never, SecureRandom.SecureRandom> = Effect.flatMap(
  SecureRandom.SecureRandom,
  (random) => Effect.map(random.randomBytes(32), base64url)
)

const keyFile = "master.key"
const nonceBytes = 12
const macBytes = 16
const idCharacters = 8

/** The key of development: made at the first start, then found again. */
const keyInDataDirectory = Effect.fnUntraced(function* (dataDir: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const random = yield* SecureRandom.SecureRandom
  const file = path.join(dataDir, keyFile)
  yield* fs.makeDirectory(dataDir, { recursive: true })
  const made = Buffer.from(yield* random.randomBytes(32)).toString("base64")
  const draft = `${file}.${yield* random.uuidV4()}`
  yield* fs.writeFileString(draft, made, { mode: 0o600 })
  // Two processes may start at once: whoever links the file first has chosen for both.
  yield* Effect.ignore(fs.link(draft, file))
  yield* fs.remove(draft)
  const bytes = Buffer.from(yield* fs.readFileString(file), "base64")
  if (bytes.length === 32) return new Uint8Array(bytes)
  return yield* new SecretError({
    message: `${file} does not hold 32 bytes in base64. Restore it, or set SVC_MASTER_KEY.`
  })
})

/** What the master key can do. */
export class Secrets extends Context.Service<
  Secrets,
  {
    /** Seals a text. `purpose` binds it to its place: it opens only under the same purpose. */
    readonly seal: (text: string, purpose: string) => Effect.Effect<string>
    readonly open: (sealed: string, purpose: string) => Effect.Effect<string, SecretError>
    /** A keyed code of a text, 22 characters, by which the service knows its own. */
    readonly mark: (text: string) => string
    readonly isMark: (text: string, mark: string) => boolean
  }
>()("server/platform/secrets/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const settings = yield* Settings
      const master =
        settings.masterKey === undefined
          ? yield* keyInDataDirectory(settings.dataDir)
          : Redacted.value(settings.masterKey)
      return yield* makeSecrets(master, settings.olderMasterKeys.map(Redacted.value))
    })
  ).pipe(Layer.provide(Aead.layerWebCrypto))
}

/** A master key, named without telling it. */
const makeMaster = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const macKey = createHmac("sha256", bytes).update("marks").digest()
  const mark = (text: string) =>
    base64url(createHmac("sha256", macKey).update(text).digest().subarray(0, macBytes))
  return {
    id: hash("sha256", bytes, "base64url").slice(0, idCharacters),
    key: yield* keyOf(bytes),
    mark
  }
})

const keyOf = (bytes: Uint8Array) => Effect.orDie(Aead.key(Aead.aes256Gcm, bytes))

/** Seals bytes under a key and opens them; a random nonce goes before what is sealed. */
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

/** The first of the master keys seals; all of them open. */
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
      // As it was before there were envelopes: under a master key itself.
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
                `A stored secret (${purpose}) was sealed under another master key. ` +
                "Set the SVC_MASTER_KEY of the service that made this database."
            })
        )
      ),
    mark: master.mark,
    isMark: (text, given) => {
      const actual = Buffer.from(given)
      return masters.some(({ mark }) => {
        const expected = Buffer.from(mark(text))
        return actual.length === expected.length && timingSafeEqual(actual, expected)
      })
    }
  })
})
