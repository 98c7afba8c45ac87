/** Asks STUN and TURN servers as the browser of a player does. */
import { createSocket, type Socket } from "node:dgram"
import { lookup } from "node:dns/promises"
import { Effect } from "effect"
import type { IceServer } from "#rpc/peers"
import { type Check, failed, ok } from "./doctor-checks.ts"
import { connects } from "./connects.ts"
import { methods, readStunResponse, stunRequest } from "./stun.ts"

/** Scheme, host and port of an ICE server's URL. */
interface IceAddress {
  readonly scheme: "stun" | "stuns" | "turn" | "turns"
  readonly host: string
  readonly port: number
  readonly transport: "udp" | "tcp"
}

const form = /^(stuns?|turns?):(\[[^\]]+\]|[^:?]+)(?::(\d+))?(?:\?transport=(udp|tcp))?$/i

const defaultPort = 3478
const defaultTlsPort = 5349

/** Parses `turn:host:port?transport=udp`. */
export const parseIceUrl = (url: string): IceAddress | undefined => {
  const [, name = "", host = "", port, transport] = form.exec(url) ?? []
  const scheme = (["stun", "stuns", "turn", "turns"] as const).find(
    (it) => it === name.toLowerCase()
  )
  if (scheme === undefined) return undefined
  const isTls = scheme.endsWith("s")
  return {
    scheme,
    host: host.replace(/^\[|\]$/g, ""),
    port: port === undefined ? (isTls ? defaultTlsPort : defaultPort) : Number(port),
    transport: isTls || transport === "tcp" ? "tcp" : "udp"
  }
}

const silent = "no_response"
type Outcome = typeof silent | "reached" | "relay" | "credentials_refused" | `code_${number}`

const attempts = 3

const openSocket = (host: string) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const { address, family } = await lookup(host)
        const socket = createSocket(family === 6 ? "udp6" : "udp4")
        // Each request reports it: without a response it fails.
        return { socket: socket.on("error", () => undefined), address }
      },
      catch: (): typeof silent => silent
    }),
    ({ socket }) => Effect.sync(() => socket.close())
  )

interface Peer {
  readonly socket: Socket
  readonly address: string
  readonly port: number
}

type StunResponse = Exclude<ReturnType<typeof readStunResponse>, undefined>

/** Sends a request until a response comes. */
const ask = ({ address, port, socket }: Peer, request: Buffer) =>
  Effect.callback<StunResponse, typeof silent>((resume) => {
    socket.removeAllListeners("message")
    socket.on("message", (message) => {
      const response = readStunResponse(request, message)
      if (response !== undefined) resume(Effect.succeed(response))
    })
    socket.on("error", () => resume(Effect.fail(silent)))
    socket.send(request, port, address)
  }).pipe(
    Effect.timeoutOrElse({
      duration: "1 second",
      orElse: () => Effect.fail<typeof silent>(silent)
    }),
    Effect.retry({ times: attempts - 1 })
  )

/** Allocates a relay address and releases it. */
const probeUdp = Effect.fnUntraced(
  function* ({ host, port, scheme }: IceAddress, { credential = "", username = "" }: IceServer) {
    const peer = { ...(yield* openSocket(host)), port }
    if (scheme === "stun") {
      yield* ask(peer, stunRequest(methods.binding))
      return "reached" as const
    }
    const first = yield* ask(peer, stunRequest(methods.allocate))
    if (first.isSuccess) return "relay" as const
    const credentials = { credential, username, realm: first.realm, nonce: first.nonce }
    const second = yield* ask(peer, stunRequest(methods.allocate, credentials))
    if (!second.isSuccess) {
      const refused = second.code === 401 || second.code === 400 || second.code === 441
      return refused ? ("credentials_refused" as const) : (`code_${second.code}` as const)
    }
    yield* Effect.ignore(ask(peer, stunRequest(methods.refresh, credentials)))
    return "relay" as const
  },
  Effect.scoped,
  Effect.catch((outcome) => Effect.succeed(outcome))
)

/** Checks the connection only, over TCP and TLS. */
const probeTcp = ({ host, port, scheme }: IceAddress) =>
  Effect.map(connects({ host, port, isTls: scheme.endsWith("s") }), (isOpen): Outcome =>
    isOpen ? "reached" : silent
  )

const checkOf = (url: string, outcome: Outcome): Check => {
  const name = `turn ${url}`
  if (outcome === "relay") return ok(name, "gave a relay for the player's credentials")
  if (outcome === "reached") return ok(name, "answers")
  if (outcome === silent) {
    return failed(
      name,
      "does not answer",
      "Check that the server runs, its address in SVC_TURN_URLS, and that firewalls let its port through."
    )
  }
  if (outcome === "credentials_refused") {
    return failed(
      name,
      "refuses the credentials of the service",
      "Set SVC_TURN_SECRET to the static-auth-secret of the TURN server, and check both clocks."
    )
  }
  return failed(
    name,
    `refuses a relay (STUN error ${outcome.slice("code_".length)})`,
    "Look at the log of the TURN server: its quota, its relay ports, its denied peers."
  )
}

/** Checks each address of the servers that the service names. */
export const checkIceServers = Effect.fnUntraced(function* (servers: ReadonlyArray<IceServer>) {
  const all = servers.flatMap((server) => server.urls.map((url) => ({ server, url })))
  return yield* Effect.forEach(
    all,
    Effect.fnUntraced(function* ({ server, url }) {
      const address = parseIceUrl(url)
      if (address === undefined) return checkOf(url, silent)
      const probe = address.transport === "udp" ? probeUdp(address, server) : probeTcp(address)
      return checkOf(url, yield* probe)
    }),
    { concurrency: 4 }
  )
})
