/**
 * A TURN server for tests: coturn where it is installed, the embeddable `turn-server` package
 * elsewhere. Both take the REST credentials that the service issues with the shared secret.
 */
import { spawn, spawnSync } from "node:child_process"
import { createSocket } from "node:dgram"
import { readFileSync } from "node:fs"
import { BlockList, isIP, isIPv4 } from "node:net"
import { networkInterfaces } from "node:os"
import { fileURLToPath } from "node:url"
import { Context, Effect, Layer } from "effect"
import { createServer, type Socket } from "turn-server"

/** The secret that the service and the TURN server share. */
export const turnSecret = "shared-with-the-turn-server"

const host = "127.0.0.1"
const realm = "test"

/**
 * Where relays are. They reach only each other, so no peer bypasses its own relay, as libjuice may try
 * when everything is at one address. Only Linux has more than one loopback address by default.
 */
const relayHost = process.platform === "linux" ? "127.0.0.2" : host

/** The configuration that operators deploy. */
export const shipped = fileURLToPath(new URL("../../deploy/turnserver.conf", import.meta.url))

export const hasCoturn = spawnSync("turnserver", ["--version"]).error === undefined

export const hasIPv6 = Object.values(networkInterfaces()).some((each) =>
  each?.some(({ address }) => address === "::1")
)

/** Which peers a relay may reach. */
type Peers = "loopback" | "shipped" | "relayOnly"

/** The address that stands for that of the relay where it relays to itself alone. */
export const ownRelayAddress = "9.9.9.9"

/** The options by which the compose file lets the relay reach itself alone. */
const relayOnlyOptions = readFileSync(
  fileURLToPath(new URL("../../compose.yaml", import.meta.url)),
  "utf8"
)
  .split("\n")
  .flatMap((line) => /^ +- (--(?:allowed|denied)-peer-ip=\S+)/.exec(line)?.[1] ?? [])
  .map((option) => option.replace(/\$\{TURN_ADDRESS.*/, ownRelayAddress))

const freeUdpPort = Effect.callback<number>((resume) => {
  const socket = createSocket("udp4")
  socket.bind(0, host, () => {
    const { port } = socket.address()
    socket.close(() => resume(Effect.succeed(port)))
  })
})

const bindingRequest = Buffer.from(`000100002112a442${"00".repeat(12)}`, "hex")
const probeMillis = 50
const readyMillis = 5000

/** Waits until the server replies to a STUN binding request; in real time, whatever clock the test has. */
const untilReady = (port: number, log: () => string) =>
  Effect.callback<void, Error>((resume) => {
    const socket = createSocket("udp4")
    const probe = setInterval(() => socket.send(bindingRequest, port, host), probeMillis)
    const deadline = setTimeout(() => {
      stop()
      resume(Effect.fail(new Error(`The TURN server does not start:\n${log()}`)))
    }, readyMillis)
    const stop = () => {
      clearTimeout(deadline)
      clearInterval(probe)
      socket.close()
    }
    socket.once("message", () => {
      stop()
      resume(Effect.void)
    })
    return Effect.sync(stop)
  })

const shippedOptions = ["-c", shipped, ...(hasIPv6 ? ["--relay-ip=::1"] : [])]

const coturnOptions: Readonly<Record<Peers, ReadonlyArray<string>>> = {
  loopback: [
    "-n",
    "--use-auth-secret",
    "--fingerprint",
    "--no-cli",
    "--no-tcp-relay",
    "--allow-loopback-peers",
    ...(relayHost === host ? [] : [`--denied-peer-ip=${host}`]),
    "--log-file=stdout",
    "--verbose"
  ],
  shipped: shippedOptions,
  relayOnly: [...shippedOptions, ...relayOnlyOptions]
}

/** Starts coturn and returns its log; `options` name the configuration, the addresses and the transports. */
export const spawnCoturn = Effect.fnUntraced(function* (
  port: number,
  options: ReadonlyArray<string>
) {
  let log = ""
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const server = spawn("turnserver", [
        ...options,
        `--realm=${realm}`,
        `--static-auth-secret=${turnSecret}`,
        `--listening-port=${port}`,
        "--no-tls",
        "--no-dtls",
        "--pidfile=/dev/null"
      ])
      for (const output of [server.stdout, server.stderr]) {
        output.on("data", (chunk: Buffer) => (log += chunk.toString()))
      }
      return server
    }),
    (server) => Effect.sync(() => server.kill("SIGKILL"))
  )
  return () => log
})

const startCoturn = (port: number, peers: Peers) =>
  spawnCoturn(port, [...coturnOptions[peers], `--listening-ip=${host}`, `--relay-ip=${relayHost}`])

/** The peers that `denied-peer-ip` and `no-multicast-peers` of the shipped configuration refuse. */
const shippedDenials = () => {
  const ranges = readFileSync(shipped, "utf8").matchAll(/^denied-peer-ip=([^-\s]+)-(\S+)$/gm)
  // One list per family: Node matches IPv4 addresses against IPv6 ranges that hold mapped ones.
  const denied = { ipv4: new BlockList(), ipv6: new BlockList() }
  denied.ipv4.addSubnet("224.0.0.0", 4, "ipv4")
  denied.ipv6.addSubnet("ff00::", 8, "ipv6")
  denied.ipv6.addAddress("::", "ipv6")
  for (const [, first = "", last = ""] of ranges) {
    const family = isIPv4(first) ? "ipv4" : "ipv6"
    denied[family].addRange(first, last, family)
  }
  return denied
}

const reachable: Readonly<Record<Peers, () => (address: string) => boolean>> = {
  loopback: () => (address) => address === relayHost,
  relayOnly: () => (address) => relayOnlyOptions.length === 3 && address === ownRelayAddress,
  shipped: () => {
    const denied = shippedDenials()
    return (address) => {
      const family = isIPv4(address) ? "ipv4" : "ipv6"
      return isIP(address) !== 0 && !denied[family].check(address, family)
    }
  }
}

/** What a hook of the package gets of the peer that a client asks for. */
interface PeerRequest {
  readonly peer: { readonly ip: string }
}

/**
 * libjuice keeps the transaction id when it repeats a request with credentials. The package takes that
 * for a retransmission and repeats its 401, unless it has forgotten that reply.
 */
const acceptSameTransaction = (client: Socket): void => {
  const session = client.getSession()
  let wasSigned = false
  session.on("raw", ({ integrity_offset: offset }: { readonly integrity_offset: unknown }) => {
    const isSigned = offset !== null
    if (isSigned && !wasSigned) session.context["lastResponse"] = null
    wasSigned = isSigned
  })
}

/** The package refuses no private addresses by itself, so both hooks that grant a peer check it. */
const startEmbedded = (port: number, peers: Peers) =>
  Effect.gen(function* () {
    const mayReach = reachable[peers]()
    const users: Array<string> = []
    const server = createServer({
      auth: { mechanism: "long-term", realm, secret: turnSecret },
      relay: { ip: relayHost, externalIp: relayHost },
      allowLoopback: peers === "loopback"
    })
    const decide = ({ peer }: PeerRequest, grant: (granted: boolean) => void) =>
      grant(mayReach(peer.ip))
    server.on("connection", acceptSameTransaction)
    server.on("beforePermission", decide)
    server.on("beforeChannelBind", decide)
    server.on("allocate", (_, { username }) => users.push(String(username)))
    yield* Effect.acquireRelease(
      Effect.sync(() => server.listen([{ port, transport: "udp", address: host }])),
      () => Effect.sync(() => server.stop())
    )
    return () => users.join("\n")
  })

export class TurnServer extends Context.Service<
  TurnServer,
  {
    readonly port: number
    /** Names the user of every allocation. */
    readonly log: () => string
  }
>()("test/support/turn-server/TurnServer") {
  /** Relays between peers on this machine. */
  static readonly layerLoopback = TurnServer.#layer("loopback")

  /** Relays to the peers that the shipped configuration allows. */
  static readonly layerShipped = TurnServer.#layer("shipped")

  /** Relays to its own address alone, as the compose file does. */
  static readonly layerRelayOnly = TurnServer.#layer("relayOnly")

  static #layer(peers: Peers) {
    return Layer.effect(
      TurnServer,
      Effect.gen(function* () {
        const port = yield* freeUdpPort
        const log = yield* hasCoturn ? startCoturn(port, peers) : startEmbedded(port, peers)
        yield* untilReady(port, log)
        return TurnServer.of({ port, log })
        // Another program may take the port before the server does.
      }).pipe(Effect.retry({ times: 3 }), Effect.orDie)
    )
  }
}
