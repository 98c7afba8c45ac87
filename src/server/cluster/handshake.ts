/**
 * Rules of the handshake that opens each connection between two runners. Both prove that they hold the
 * same key, which is derived from the master key, before either reads anything else:
 *
 *   dialer to listener   hello: versions, a nonce, ids of its keys, its address and the dialed one
 *   listener to dialer   reply: versions, a nonce, its address, the id of the key that both have
 *   listener to dialer   proof
 *   dialer to listener   proof
 *
 * A proof is an HMAC over the role, the bytes of hello and reply, and the TLS session if there is one.
 * It covers fresh nonces of both sides and both addresses. So it is of no use on another connection,
 * in the other role or to another runner. Unknown fields are ignored. The order and the meaning of
 * these messages never change: they are how runners of any two releases find out whether they work
 * together.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Data, Option, Schema } from "effect"

/**
 * Version of the protocol between runners. Runners with the same number work together: an older
 * release ignores the additions of a newer one. Raise it when that cannot hold.
 */
export const clusterProtocolVersion = 1

/** The label under which the keys of runners are derived from the master keys. */
export const keyPurpose = "runner port 1"

const keyIdCharacters = 11
/** Maximum number of key ids that fit into a hello. */
const keysMax = 8

export type HandshakeFailure =
  | "unlisted"
  | "unreachable"
  | "empty"
  | "closed"
  | "late"
  | "invalid"
  | "tls"
  | "key"
  | "proof"
  | "address"
  | "version"

/** A connection that was not established; the message says what an operator can do. */
export class HandshakeError extends Data.TaggedError("HandshakeError")<{
  readonly reason: HandshakeFailure
  readonly message: string
}> {}

/** Error for a connection that never carried a byte: a health check or a port scan. */
export const emptyConnection = new HandshakeError({
  reason: "empty",
  message: "The other end closed the connection without sending anything."
})

export interface RunnerKey {
  readonly id: string
  readonly secret: Uint8Array
}

/** Identity of a runner in the handshake. */
export interface RunnerIdentity {
  /** `host:port`, as in the runner list. */
  readonly address: string
  readonly protocol: number
  readonly release: string
  /** Keys of the cluster, newest first. */
  readonly keys: ReadonlyArray<RunnerKey>
}

/**
 * Uses of a connection other than the cluster's RPC. A runner names in its reply what it serves. The
 * number is that of the protocol on the connection: runners of another one refuse each other's calls.
 */
export const streamUses = ["functions 2"] as const
export type StreamUse = (typeof streamUses)[number]

/** The other end of an authenticated connection. */
export interface RunnerPeer extends Omit<RunnerIdentity, "keys"> {
  /** Use of the connection; undefined for the cluster's RPC. */
  readonly use: StreamUse | undefined
}

/** HMAC over parts that no other list of parts can imitate. */
const mac = (secret: Uint8Array, parts: ReadonlyArray<Uint8Array | string>): Buffer => {
  const hmac = createHmac("sha256", secret)
  for (const part of parts) {
    const bytes = Buffer.from(part)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    hmac.update(length).update(bytes)
  }
  return hmac.digest()
}

/** Keys with ids that do not reveal them. */
export const runnerKeys = (secrets: ReadonlyArray<Uint8Array>): ReadonlyArray<RunnerKey> =>
  secrets.slice(0, keysMax).map((secret) => ({
    id: mac(secret, ["id"]).toString("base64url").slice(0, keyIdCharacters),
    secret
  }))

const versions = { protocol: Schema.Int, release: Schema.String, nonce: Schema.String }

const Hello = Schema.fromJsonString(
  Schema.Struct({
    ...versions,
    keys: Schema.Array(Schema.String),
    from: Schema.String,
    to: Schema.String,
    use: Schema.optionalKey(Schema.String)
  })
)
export type Hello = typeof Hello.Type

const Reply = Schema.fromJsonString(
  Schema.Struct({
    ...versions,
    address: Schema.String,
    /** Id of the common key; null if the listener has none of the dialer's keys. */
    key: Schema.NullOr(Schema.String),
    uses: Schema.optionalKey(Schema.Array(Schema.String))
  })
)
export type Reply = typeof Reply.Type

const decodeHelloText = Schema.decodeOption(Hello)
const decodeReplyText = Schema.decodeOption(Reply)

export const decodeHello = (bytes: Buffer): Hello | undefined =>
  Option.getOrUndefined(decodeHelloText(bytes.toString()))

export const decodeReply = (bytes: Buffer): Reply | undefined =>
  Option.getOrUndefined(decodeReplyText(bytes.toString()))

export const helloOf = (
  self: RunnerIdentity,
  to: string,
  nonce: string,
  use: StreamUse | undefined
): Buffer => {
  const { address, keys, protocol, release } = self
  const hello: Hello = {
    protocol,
    release,
    nonce,
    keys: keys.map(({ id }) => id),
    from: address,
    to,
    ...(use === undefined ? {} : { use })
  }
  return Buffer.from(JSON.stringify(hello))
}

export const replyOf = (
  self: RunnerIdentity,
  key: RunnerKey | undefined,
  nonce: string
): Buffer => {
  const { address, protocol, release } = self
  const reply: Reply = { protocol, release, nonce, address, key: key?.id ?? null, uses: streamUses }
  return Buffer.from(JSON.stringify(reply))
}

/** The first of the dialer's keys that the listener also has. */
export const commonKey = (
  keys: ReadonlyArray<RunnerKey>,
  offered: ReadonlyArray<string>
): RunnerKey | undefined => {
  for (const id of offered.slice(0, keysMax)) {
    const found = keys.find((key) => key.id === id)
    if (found !== undefined) return found
  }
  return undefined
}

/** Messages of both sides before their proofs. */
export interface Transcript {
  readonly hello: Buffer
  readonly reply: Buffer
  /** A value that only the two ends of this TLS session know; empty without TLS. */
  readonly session: Buffer
}

export const proofOf = (
  role: "dialer" | "listener",
  { secret }: RunnerKey,
  { hello, reply, session }: Transcript
): Buffer => mac(secret, [role, hello, reply, session])

/** Compares in constant time. */
export const isProof = (expected: Buffer, given: Buffer): boolean =>
  expected.length === given.length && timingSafeEqual(expected, given)
