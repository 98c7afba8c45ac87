/**
 * Forges access tokens: unsigned, signed with a foreign key or with the public key as a secret, changed in
 * transit, or signed with the service's own key but with wrong claims.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign
} from "node:crypto"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { SqlClient } from "effect/sql"
import { Secrets } from "#server/platform/secrets"
import { Settings } from "#server/platform/settings/settings"
import { masterKeyOf } from "../master-keys.ts"

/** Master key of the service under attack. */
export const SVC_MASTER_KEY = masterKeyOf(7)

const SecretsLive = Secrets.layer.pipe(
  Layer.provide(Settings.layer),
  Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env: { SVC_MASTER_KEY } }))),
  Layer.provide([SecureRandom.layerWebCrypto, NodeServices.layer])
)

type Members = Readonly<Record<string, unknown>>

/** A forged token and a description of the forgery. */
export type Forged = readonly [description: string, token: string]

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url")

const signed = (key: KeyObject, header: unknown, claims: unknown): string => {
  const body = `${encode(header)}.${encode(claims)}`
  const signature = sign("sha256", Buffer.from(body), { key, dsaEncoding: "ieee-p1363" })
  return `${body}.${signature.toString("base64url")}`
}

const hmac = (header: unknown, claims: unknown, secret: string | Buffer): string => {
  const body = `${encode(header)}.${encode(claims)}`
  return `${body}.${createHmac("sha256", secret).update(body).digest("base64url")}`
}

const attacker = generateKeyPairSync("ec", { namedCurve: "P-256" })

/** The signing key of the service, opened with its master key. */
export const signingKey = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const [row] = yield* sql<{ readonly kid: string; readonly sealed: string }>`
    select kid, private_jwk_sealed as sealed from signing_keys`
  if (row === undefined) return yield* Effect.die("no signing key")
  const jwk: JsonWebKey = JSON.parse(yield* secrets.open(row.sealed, "signing key"))
  return { kid: row.kid, key: createPrivateKey({ key: jwk, format: "jwk" }) }
}).pipe(Effect.provide(SecretsLive))
export type SigningKey = Effect.Success<typeof signingKey>

const headerOf = (kid: string) => ({ alg: "ES256", kid, typ: "at+jwt" })

export const partsOf = (token: string) => {
  const [header = "", body = "", signature = ""] = token.split(".")
  const claims: Members = JSON.parse(Buffer.from(body, "base64url").toString())
  return { header, body, signature, claims }
}

/** Signs any claims with the service's own key. */
export const misissue = ({ key, kid }: SigningKey, claims: Members, header: Members = {}): string =>
  signed(key, { ...headerOf(kid), ...header }, claims)

/** Tokens that an attacker can forge without the private key. */
export const forgedWithoutKey = (
  { key, kid }: SigningKey,
  claims: Members
): ReadonlyArray<Forged> => {
  const publicKey = createPublicKey(key)
  const jwk = publicKey.export({ format: "jwk" })
  const pem = String(publicKey.export({ type: "spki", format: "pem" }))
  const own = attacker.publicKey.export({ format: "jwk" })
  const header = headerOf(kid)
  const body = `${encode(header)}.${encode(claims)}`
  const none = ["none", "None", "NONE", "nOnE", "", null, 0, ["ES256"], {}, "ES256 "]
  const others = ["HS256", "HS384", "HS512", "RS256", "RS512", "PS256", "ES384", "ES512", "EdDSA"]
  const kids = ["", "x", "../../dev/null", "/dev/null", "' or 1=1 --", null, 7, own.x, `${kid} `]
  const headers: ReadonlyArray<Members> = [
    { jku: "https://evil.example/jwks.json" },
    { x5u: "https://evil.example/cert" },
    { jwk: own },
    { x5c: ["MIIB"] },
    { crit: ["exp"] },
    { crit: ["b64"], b64: false },
    { zip: "DEF" },
    { cty: "JWT" },
    { typ: "JWT" }
  ]
  const secrets = [pem, pem.trim(), JSON.stringify(jwk), String(jwk.x), kid, "", "secret"]
  const by = (more: Members) => signed(attacker.privateKey, { ...header, ...more }, claims)
  return [
    ...none.map((alg): Forged => [
      `alg ${JSON.stringify(alg)}, not signed`,
      `${encode({ ...header, alg })}.${encode(claims)}.`
    ]),
    ...[...none, ...others].map((alg): Forged => [
      `alg ${JSON.stringify(alg)}, signed with a foreign key`,
      by({ alg })
    ]),
    ...kids.map((other): Forged => [`kid ${JSON.stringify(other)}`, by({ kid: other })]),
    ...headers.map((more): Forged => [JSON.stringify(more).slice(0, 40), by(more)]),
    ...secrets.map((secret): Forged => [
      `HS256 with ${secret.slice(0, 12)}`,
      hmac({ ...header, alg: "HS256" }, claims, secret)
    ]),
    ["an HMAC declared as ES256", hmac(header, claims, pem)],
    ["signed with a foreign key", by({})],
    ["an empty signature", `${body}.`],
    ["a signature of zeros", `${body}.${"A".repeat(86)}`]
  ]
}

/** Changes of a valid token that need no key and that a header can carry. */
export const tampered = (token: string): ReadonlyArray<Forged> => {
  const { body, claims, header, signature } = partsOf(token)
  const later = encode({ ...claims, exp: Number(claims["exp"]) + 900 })
  const bits = { A: "B", Q: "R", g: "h", w: "x" }[signature.slice(-1)] ?? "B"
  return [
    ["padding", `${token}=`],
    ["more padding", `${token}==`],
    ["a trailing dot", `${token}.`],
    ["a fourth part", `${token}.${signature}`],
    ["no signature", `${header}.${body}`],
    ["no claims", `${header}..${signature}`],
    ["no header", `.${body}.${signature}`],
    ["padded claims", `${header}.${body}=.${signature}`],
    ["parts swapped", `${body}.${header}.${signature}`],
    ["spare bits set in the signature", `${header}.${body}.${signature.slice(0, -1)}${bits}`],
    ["a longer signature", `${token}A`],
    ["a shorter signature", token.slice(0, -2)],
    ["a doubled signature", `${token}${signature}`],
    ["standard base64", `${header}.${body}.${signature.slice(0, -2)}+/`],
    ["a later expiry", `${header}.${later}.${signature}`],
    ["upper case", token.toUpperCase()],
    ["dots", ".."],
    ["null", "null"],
    ["undefined", "undefined"],
    ["a word", "Bearer"],
    ["a JSON", "{}"],
    ["quoted", `"${token}"`],
    ["4 KiB too long", `${token}${"A".repeat(4096)}`]
  ]
}

/** Tokens of the service's own key with a wrong audience, issuer, time or type. */
export const misissuedTokens = (
  key: SigningKey,
  claims: Members,
  foreignAudiences: ReadonlyArray<string>
): ReadonlyArray<Forged> => {
  const { aud, iss, sub } = claims
  const now = Number(claims["iat"])
  const without = (name: string) =>
    Object.fromEntries(Object.entries(claims).filter(([member]) => member !== name))
  const wrong: Readonly<Record<string, ReadonlyArray<unknown>>> = {
    aud: [
      ...foreignAudiences,
      "",
      null,
      7,
      [aud],
      [aud, foreignAudiences[0]],
      [],
      iss,
      String(aud).toLowerCase()
    ],
    iss: ["https://evil.example", `${String(iss)}/`, `${String(iss)}.evil`, "", null, [iss], aud],
    sub: [
      "",
      null,
      7,
      [sub],
      { id: sub },
      "pl_",
      `${String(sub)} `,
      String(sub).toLowerCase(),
      aud
    ],
    sid: ["", null, 7, "x", sub],
    exp: ["soon", null, String(now + 900), true],
    iat: ["now", null],
    nbf: [now + 3600, "later"],
    guest: ["yes", null, 1]
  }
  const types = ["JWT", "id_token", "at+jwt+x", "refresh", null, 7]
  const idToken = { iss, aud, sub, iat: now, exp: now + 900, nonce: "n", email: "ada@example.com" }
  return [
    ...Object.entries(wrong).flatMap(([name, values]) =>
      values.map((value): Forged => [
        `${name} ${JSON.stringify(value)}`,
        misissue(key, { ...claims, [name]: value })
      ])
    ),
    ...["aud", "iss", "sub", "sid", "exp", "iat", "guest"].map((name): Forged => [
      `no ${name}`,
      misissue(key, without(name))
    ]),
    ...types.map((typ): Forged => [`typ ${typ}`, misissue(key, claims, { typ })]),
    ["no typ", misissue(key, claims, { typ: undefined })],
    ["an id token", misissue(key, idToken, { typ: "JWT" })],
    ["an id token declared as an access token", misissue(key, idToken)],
    ["an unknown critical header", misissue(key, claims, { crit: ["svc"], svc: 1 })]
  ]
}
