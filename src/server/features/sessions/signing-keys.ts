/**
 * Signing keys of access tokens. The key pair is generated once per database; its private key is sealed
 * under the master key.
 */
import { DateTime, Effect, Schema } from "effect"
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import { type SigningKeyRow, SigningKeyRepository } from "#sql/sessions"
import { Secrets } from "#server/platform/secrets"

/** JWS algorithm of all access tokens. */
export const algorithm = "ES256"

const purpose = "signing key"

/** Public JSON Web Key of the key set (RFC 7517). */
const PublicJwk = Schema.Struct({
  kty: Schema.Literal("EC"),
  crv: Schema.Literal("P-256"),
  x: Schema.String,
  y: Schema.String,
  kid: Schema.String,
  alg: Schema.Literal("ES256"),
  use: Schema.Literal("sig")
})
export type PublicJwk = typeof PublicJwk.Type

const PrivateJwk = Schema.Struct({ ...PublicJwk.fields, d: Schema.String })

const PublicJwkText = Schema.fromJsonString(PublicJwk)
const PrivateJwkText = Schema.fromJsonString(PrivateJwk)

/** The public keys, newest first. */
export type PublicJwks = readonly [PublicJwk, ...ReadonlyArray<PublicJwk>]

/** Loads the key pair. The first process on a database generates it. */
export const signingKeys = Effect.gen(function* () {
  const repository = yield* SigningKeyRepository
  const secrets = yield* Secrets
  const found = yield* repository.all
  const stored = found.length > 0 ? found : yield* repository.allOrCreate(generateKey)
  const [newest, ...older] = yield* Effect.forEach(stored, (row) =>
    Effect.orDie(Schema.decodeEffect(PublicJwkText)(row.publicJwk))
  )
  const sealed = stored[0]?.privateJwkSealed
  if (newest === undefined || sealed === undefined)
    return yield* Effect.die("Failed to load the signing key: the table signing_keys is empty")
  const text = yield* secrets.open(sealed, purpose)
  const jwk = yield* Effect.orDie(Schema.decodeEffect(PrivateJwkText)(text))
  const privateKey = yield* Effect.promise(() => importJWK(jwk, algorithm))
  const publicJwks: PublicJwks = [newest, ...older]
  return { privateKey, publicJwks }
})

const generateKey = Effect.gen(function* () {
  const secrets = yield* Secrets
  const jwk = yield* Effect.promise(async () => {
    const pair = await generateKeyPair(algorithm, { extractable: true })
    const exported = await exportJWK(pair.privateKey)
    return { ...exported, kid: await calculateJwkThumbprint(exported), alg: algorithm, use: "sig" }
  })
  const privateJwk = yield* Schema.decodeUnknownEffect(PrivateJwk)(jwk)
  const publicJwk = yield* Schema.decodeUnknownEffect(PublicJwk)(jwk)
  const row: SigningKeyRow = {
    kid: privateJwk.kid,
    publicJwk: yield* Schema.encodeEffect(PublicJwkText)(publicJwk),
    privateJwkSealed: yield* secrets.seal(
      yield* Schema.encodeEffect(PrivateJwkText)(privateJwk),
      purpose
    ),
    createdAt: yield* DateTime.now
  }
  return row
}).pipe(Effect.orDie)
