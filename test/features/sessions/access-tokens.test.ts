/** Access tokens: signature, claims, expiry, and the forgeries that verification must refuse. */
import { createHmac, createPublicKey, generateKeyPairSync, sign } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createLocalJWKSet, jwtVerify } from "jose"
import { newId } from "#rpc/ids"
import type { PublicJwk } from "#server/features/sessions/signing-keys"
import { AccessTokens, type TokenSubject } from "#server/features/sessions/tokens"
import { coreOfNode, SharedDatabase } from "../../support/http-stack.ts"
import { masterKeyOf } from "../../support/master-keys.ts"

const Core = coreOfNode().pipe(Layer.provideMerge(SharedDatabase.layer))

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

const newSubject = Effect.gen(function* () {
  const subject: TokenSubject = {
    environmentId: yield* newId.environment,
    playerId: yield* newId.player,
    sessionId: yield* newId.session,
    isGuest: true
  }
  return subject
})

type Claims = Readonly<Record<string, unknown>>

const claimsOf = (subject: TokenSubject): Claims => ({
  iss: "https://play.example.com",
  aud: subject.environmentId,
  sub: subject.playerId,
  sid: subject.sessionId,
  guest: true,
  iat: 0,
  exp: 900
})

/** Key pair of an attacker. */
const attacker = generateKeyPairSync("ec", { namedCurve: "P-256" })
const attackerJwk = attacker.publicKey.export({ format: "jwk" })

const forge = (header: unknown, claims: unknown): string => {
  const body = `${encode(header)}.${encode(claims)}`
  const key = { key: attacker.privateKey, dsaEncoding: "ieee-p1363" } as const
  return `${body}.${sign("sha256", Buffer.from(body), key).toString("base64url")}`
}

const hmac = (header: unknown, claims: unknown, secret: string | Buffer): string => {
  const body = `${encode(header)}.${encode(claims)}`
  return `${body}.${createHmac("sha256", secret).update(body).digest("base64url")}`
}

/** Tokens that an attacker can forge without the private key. */
const withoutKey = (kid: string, jwk: PublicJwk, claims: Claims): ReadonlyArray<string> => {
  const publicKey = createPublicKey({ key: { ...jwk }, format: "jwk" })
  const pem = publicKey.export({ type: "spki", format: "pem" })
  const header = { alg: "ES256", kid, typ: "at+jwt" }
  const body = `${encode(header)}.${encode(claims)}`
  const none = ["none", "None", "NONE", "nOnE", "", null, 0, ["ES256"], {}, "ES256 "]
  const algorithms = ["HS256", "HS384", "HS512", "RS256", "PS256", "ES384", "ES512", "EdDSA", "A"]
  const kids = ["", "x", "../../dev/null", "' or 1=1 --", null, 7, attackerJwk.x, `${kid} `]
  const headers = [
    { jku: "https://evil.example/jwks.json" },
    { x5u: "https://evil.example/cert" },
    { jwk: attackerJwk },
    { x5c: ["MIIB"] },
    { crit: ["exp"] },
    { crit: ["b64"], b64: false },
    { zip: "DEF" },
    { cty: "JWT" },
    { typ: "JWT" },
    { typ: "id_token" },
    { typ: undefined }
  ]
  return [
    ...none.map((alg) => `${encode({ ...header, alg })}.${encode(claims)}.`),
    ...none.map((alg) => forge({ ...header, alg }, claims)),
    ...algorithms.map((alg) => forge({ ...header, alg }, claims)),
    ...kids.map((other) => forge({ ...header, kid: other }, claims)),
    ...headers.map((more) => forge({ ...header, ...more }, claims)),
    ...[pem, JSON.stringify(jwk), jwk.x, "", "secret"].map((secret) =>
      hmac({ ...header, alg: "HS256" }, claims, secret)
    ),
    hmac({ ...header, alg: "ES256" }, claims, pem),
    forge(header, claims),
    `${body}.`,
    `${body}.${"A".repeat(86)}`,
    `${body}.${"A".repeat(128)}`
  ]
}

/** Changes of a valid token that need no key. */
const tampered = (token: string): ReadonlyArray<string> => {
  const [header = "", claims = "", signature = ""] = token.split(".")
  const other = String.fromCharCode(signature.charCodeAt(85) + 1)
  return [
    `${token}=`,
    `${token}==`,
    `${token}\n`,
    ` ${token}`,
    `${token}.`,
    `${token}.${signature}`,
    `${header}.${claims}`,
    `${header}..${signature}`,
    `.${claims}.${signature}`,
    `${header}.${claims}=.${signature}`,
    `${claims}.${header}.${signature}`,
    `${header}.${claims}.${signature.slice(0, 85)}${other}`,
    `${header}.${claims}.${signature}A`,
    `${header}.${claims}.${signature.slice(0, -2)}`,
    `${header}.${claims}.${signature.replaceAll("-", "+").replaceAll("_", "/")}+`,
    `${header}.${encode({ ...JSON.parse(Buffer.from(claims, "base64url").toString()), exp: 1e9 })}.${signature}`,
    token.toUpperCase(),
    "",
    ".",
    "..",
    "...",
    "null",
    "undefined",
    "Bearer",
    "\u0000",
    "x".repeat(1024 * 1024),
    `${token.slice(0, -1)}${"\u{1F600}"}`
  ]
}

/** A node whose cache holds none of the tokens. */
const otherNode = Effect.map(Layer.build(Layer.fresh(coreOfNode())), (core) =>
  Context.get(core, AccessTokens)
)

layer(Core)("access tokens", (it) => {
  it.effect(
    "signs a token that names player, session and environment and expires after 15 minutes",
    () =>
      Effect.gen(function* () {
        const tokens = yield* AccessTokens
        const subject = yield* newSubject
        const token = yield* tokens.sign(subject)
        const other = yield* otherNode
        for (const node of [tokens, other, other]) {
          const caller = yield* node.verify(token, subject.environmentId)
          const { expiresAt, ...rest } = caller
          assert.deepStrictEqual(rest, subject)
          assert.strictEqual(expiresAt, 900_000)
        }
        const fresh = yield* tokens.sign({ ...subject, isGuest: false })
        yield* TestClock.adjust("899 seconds")
        yield* other.verify(token, subject.environmentId)
        yield* TestClock.adjust("1 second")
        // The other node has cached the first token and never seen the second; both have expired.
        for (const late of [token, fresh]) {
          const error = yield* Effect.flip(other.verify(late, subject.environmentId))
          assert.strictEqual(error._tag, "token_expired")
        }
      })
  )

  it.effect("refuses a token of another environment, cached or not", () =>
    Effect.gen(function* () {
      const subject = yield* newSubject
      const foreign = yield* newId.environment
      const token = yield* Effect.flatMap(AccessTokens, (signer) => signer.sign(subject))
      const tokens = yield* otherNode
      const unseen = yield* Effect.flip(tokens.verify(token, foreign))
      yield* tokens.verify(token, subject.environmentId)
      const cached = yield* Effect.flip(tokens.verify(token, foreign))
      assert.deepStrictEqual([unseen._tag, cached._tag], ["unauthorized", "unauthorized"])
    })
  )

  it.effect("refuses every forged token", () =>
    Effect.gen(function* () {
      const tokens = yield* AccessTokens
      const subject = yield* newSubject
      const token = yield* tokens.sign(subject)
      const [jwk] = tokens.jwks.keys
      if (jwk === undefined) return assert.fail("no key")
      const claims = claimsOf(subject)
      const forged = [...withoutKey(jwk.kid, jwk, claims), ...tampered(token)]
      assert.isAtLeast(forged.length, 60)
      for (const [index, candidate] of forged.entries()) {
        const outcome = yield* Effect.result(tokens.verify(candidate, subject.environmentId))
        const code = outcome._tag === "Failure" ? outcome.failure._tag : "accepted"
        assert.strictEqual(code, "unauthorized", `${index}: ${candidate.slice(0, 200)}`)
      }
      yield* tokens.verify(token, subject.environmentId)
    })
  )

  it.effect(
    "lets a game server verify offline with the published keys, which contain no private part",
    () =>
      Effect.gen(function* () {
        const tokens = yield* AccessTokens
        const subject = yield* newSubject
        const token = yield* tokens.sign(subject)
        const keys = tokens.jwks.keys.map((key) => ({ ...key }))
        assert.notProperty(keys[0], "d")
        const { payload, protectedHeader } = yield* Effect.promise(() =>
          jwtVerify(token, createLocalJWKSet({ keys }), {
            issuer: "https://play.example.com",
            audience: subject.environmentId,
            clockTolerance: Number.MAX_SAFE_INTEGER
          })
        )
        const { exp = 0, iat = 0, ...claims } = payload
        assert.deepStrictEqual({ ...claims, iat: 0, exp: 900 }, claimsOf(subject))
        assert.strictEqual(exp - iat, 900)
        assert.strictEqual(protectedHeader.alg, "ES256")
      })
  )

  it.effect("signs with one key on all nodes of a database, sealed under the master key", () =>
    Effect.gen(function* () {
      const tokens = yield* AccessTokens
      const subject = yield* newSubject
      const token = yield* tokens.sign(subject)
      const core = (env: Readonly<Record<string, string>>) =>
        Layer.build(Layer.fresh(coreOfNode(env)))
      const other = yield* core({})
      const caller = yield* Effect.flatMap(AccessTokens, (it) =>
        it.verify(token, subject.environmentId)
      ).pipe(Effect.provideContext(other))
      assert.strictEqual(caller.playerId, subject.playerId)
      const SVC_MASTER_KEY = masterKeyOf(8)
      const error = yield* Effect.flip(core({ SVC_MASTER_KEY }))
      assert.include(error.message, "another master key")
    })
  )
})
