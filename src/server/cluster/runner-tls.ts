/**
 * Mutual TLS between runners, from `SVC_RUNNER_TLS_CERT`, `SVC_RUNNER_TLS_KEY` and
 * `SVC_RUNNER_TLS_CA`. A runner accepts each certificate that the authority has signed, independent
 * of its name. Runners are addressed by host or IP, and the handshake above TLS proves both
 * addresses.
 */
import type { Socket } from "node:net"
import { connect, createSecureContext, createServer, type TLSSocket } from "node:tls"
import { Effect, FileSystem } from "effect"
import { Settings, SettingsError } from "#server/platform/settings/settings"
import { emptyConnection, HandshakeError } from "./handshake.ts"
import { runnerPort } from "./runner-port-limits.ts"

export interface TlsFiles {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

const minVersion = "TLSv1.3"

const failed = (why: string) =>
  new HandshakeError({
    reason: "tls",
    message: `The TLS handshake failed (${why}): set SVC_RUNNER_TLS_* with one authority on all runners.`
  })

/**
 * Error for a runner that stops, or that waited too long on a busy machine: it closes without a
 * reason.
 */
const interrupted = new HandshakeError({
  reason: "closed",
  message:
    "The other end closed the connection during the TLS handshake. If it always does, set " +
    "SVC_RUNNER_TLS_* with one authority on all runners."
})

const readFile = Effect.fnUntraced(function* (variable: string, path: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs
    .readFileString(path)
    .pipe(
      Effect.mapError(
        ({ message }) => new SettingsError({ issues: [`${variable}: cannot be read: ${message}`] })
      )
    )
})

/** Key and certificates, read once at the start; undefined without TLS. */
export const readTls = Effect.gen(function* () {
  const files = (yield* Settings).runner?.tls
  if (files === undefined) return undefined
  const cert = yield* readFile("SVC_RUNNER_TLS_CERT", files.cert)
  const key = yield* readFile("SVC_RUNNER_TLS_KEY", files.key)
  const ca = yield* readFile("SVC_RUNNER_TLS_CA", files.ca)
  yield* Effect.try({
    try: () => createSecureContext({ cert, key, ca }),
    catch: (error) =>
      new SettingsError({
        issues: [`SVC_RUNNER_TLS_CERT, _KEY, _CA: do not fit: ${String(error)}`]
      })
  })
  return { cert, key, ca } satisfies TlsFiles
})

/** Opens a TLS connection. */
export const connectTls = (host: string, port: number, tls: TlsFiles): TLSSocket =>
  connect({ ...tls, host, port, minVersion, checkServerIdentity: () => undefined }).on(
    "error",
    // Its user listens, too. An error ends the connection.
    () => undefined
  )

const endOf = ({ remoteAddress = "", remotePort = 0 }: Socket) => `${remoteAddress} ${remotePort}`

type Resume = (result: Effect.Effect<Socket, HandshakeError>) => void

/** Returns a function that takes an accepted connection over into TLS. */
export const makeTlsListener = (tls: TlsFiles) => {
  const waiting = new Map<string, Resume>()
  const server = createServer({
    ...tls,
    minVersion,
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: runnerPort.handshakeSeconds * 1000
  })
  // It listens to no port: connections come from the runner port.
  server.on("error", () => undefined)
  server.on("secureConnection", (secured) => {
    secured.pause().on("error", () => secured.destroy())
    const resume = waiting.get(endOf(secured))
    if (resume === undefined) secured.destroy()
    else resume(Effect.succeed(secured))
  })
  server.on("tlsClientError", (error, secured) => {
    // A connection that closes before it sends anything is reported when it has closed.
    if (secured.bytesRead > 0) waiting.get(endOf(secured))?.(Effect.fail(failed(error.message)))
    secured.destroy()
  })
  return (raw: Socket): Effect.Effect<Socket, HandshakeError> =>
    Effect.callback((resume) => {
      const end = endOf(raw)
      const stop = (result: Effect.Effect<Socket, HandshakeError>): void => {
        waiting.delete(end)
        resume(result)
      }
      waiting.set(end, stop)
      raw.once("close", () => {
        if (waiting.get(end) !== stop) return
        stop(Effect.fail(raw.bytesRead === 0 ? emptyConnection : interrupted))
      })
      server.emit("connection", raw)
      return Effect.sync(() => void waiting.delete(end))
    })
}
