/** The handshake of two runners over a socket: bounded messages, and no byte consumed after the last one. */
import type { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import { Effect } from "effect"
import { randomSecret } from "#server/platform/secrets"
import {
  commonKey,
  decodeHello,
  decodeReply,
  emptyConnection,
  HandshakeError,
  type HandshakeFailure,
  helloOf,
  isProof,
  proofOf,
  replyOf,
  type RunnerIdentity,
  type RunnerPeer,
  type StreamUse,
  streamUses,
  type Transcript
} from "./handshake.ts"
import { runnerPort } from "./runner-port-limits.ts"

const headBytes = 2
const sessionBytes = 32
const sessionLabel = "EXPORTER-runner-port"
/** The first byte of a TLS record; no valid head begins with it. */
const tlsRecords: ReadonlySet<number | undefined> = new Set([0x15, 0x16])

const fail = (reason: HandshakeFailure, message: string) => new HandshakeError({ reason, message })

const invalid = fail("invalid", "The other end is not a runner of this service.")

const closedBy = (socket: Socket) =>
  socket.bytesRead === 0
    ? emptyConnection
    : fail("closed", `The other end closed the connection: ${socket.errored?.message ?? "end"}.`)

/** Reads exactly this many bytes; later ones stay in the socket. */
const readBytes = (socket: Socket, count: number): Effect.Effect<Buffer, HandshakeError> =>
  Effect.callback((resume) => {
    const events = ["readable", "end", "close"]
    const stop = (): void => {
      for (const event of events) socket.off(event, attempt)
    }
    const attempt = (): void => {
      const bytes: unknown = socket.read(count)
      const isWhole = bytes instanceof Buffer && bytes.length === count
      if (!isWhole && !socket.readableEnded && !socket.destroyed) return
      stop()
      resume(isWhole ? Effect.succeed(bytes) : Effect.fail(closedBy(socket)))
    }
    for (const event of events) socket.on(event, attempt)
    attempt()
    return Effect.sync(stop)
  })

const readMessage = Effect.fnUntraced(function* (socket: Socket) {
  const head = yield* readBytes(socket, headBytes)
  const length = head.readUInt16BE()
  if (length > 0 && length <= runnerPort.handshakeMaxBytes) return yield* readBytes(socket, length)
  if (!tlsRecords.has(head[0])) return yield* invalid
  return yield* fail(
    "tls",
    "The other end uses TLS: set SVC_RUNNER_TLS_* on all runners or on none."
  )
})

const writeMessage = (socket: Socket, message: Buffer): Effect.Effect<void> =>
  Effect.sync(() => {
    const head = Buffer.alloc(headBytes)
    head.writeUInt16BE(message.length)
    socket.write(Buffer.concat([head, message]))
  })

const sessionOf = (socket: Socket): Buffer =>
  socket instanceof TLSSocket
    ? socket.exportKeyingMaterial(sessionBytes, sessionLabel, Buffer.alloc(0))
    : Buffer.alloc(0)

const noCommonKey = fail(
  "key",
  "The two runners have different master keys: give all runners the same SVC_MASTER_KEY, and while " +
    "you replace it the former one in SVC_OLDER_MASTER_KEYS."
)

const noReply = fail(
  "tls",
  "The other end closed the connection without a reply: it is not a runner, or one that uses TLS. " +
    "Set SVC_RUNNER_TLS_* on all runners or on none."
)

const unserved = (release: string) =>
  fail(
    "version",
    `Release ${release} passes on no requests for functions: replace all runners by the newer release.`
  )

const wrongProof = fail("proof", "The other end does not have the key that it names.")

/** The listener's side. */
export const acceptHandshake = Effect.fnUntraced(function* (socket: Socket, self: RunnerIdentity) {
  const hello = yield* readMessage(socket)
  const dialer = decodeHello(hello)
  if (dialer === undefined) return yield* invalid
  const key = commonKey(self.keys, dialer.keys)
  const reply = replyOf(self, key, yield* randomSecret)
  yield* writeMessage(socket, reply)
  if (key === undefined) return yield* noCommonKey
  if (dialer.to !== self.address) {
    return yield* fail("address", "The other end dialed the address of another runner.")
  }
  const use = streamUses.find((one) => one === dialer.use)
  if (use !== dialer.use) return yield* unserved(self.release)
  const transcript: Transcript = { hello, reply, session: sessionOf(socket) }
  yield* writeMessage(socket, proofOf("listener", key, transcript))
  const proof = yield* readMessage(socket)
  if (!isProof(proofOf("dialer", key, transcript), proof)) return yield* wrongProof
  const peer: RunnerPeer = {
    address: dialer.from,
    protocol: dialer.protocol,
    release: dialer.release,
    use
  }
  return peer
})

/** The dialer's side; `to` is the address in the runner list. */
export const startHandshake = Effect.fnUntraced(function* (
  socket: Socket,
  self: RunnerIdentity,
  to: string,
  use?: StreamUse
) {
  const hello = helloOf(self, to, yield* randomSecret, use)
  yield* writeMessage(socket, hello)
  const reply = yield* Effect.mapError(readMessage(socket), (error) =>
    error.reason === "empty" ? noReply : error
  )
  const listener = decodeReply(reply)
  if (listener === undefined) return yield* invalid
  const key = self.keys.find(({ id }) => id === listener.key)
  if (key === undefined) return yield* noCommonKey
  if (listener.address !== to) {
    return yield* fail("address", "Another runner listens at this address.")
  }
  // An older release would take the connection for the cluster's RPC.
  if (use !== undefined && listener.uses?.includes(use) !== true) {
    return yield* unserved(listener.release)
  }
  const transcript: Transcript = { hello, reply, session: sessionOf(socket) }
  const proof = yield* readMessage(socket)
  if (!isProof(proofOf("listener", key, transcript), proof)) return yield* wrongProof
  yield* writeMessage(socket, proofOf("dialer", key, transcript))
  const peer: RunnerPeer = {
    address: to,
    protocol: listener.protocol,
    release: listener.release,
    use
  }
  return peer
})
