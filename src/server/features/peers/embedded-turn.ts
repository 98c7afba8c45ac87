/**
 * TURN server of a development machine. It relays between players in this machine's network, so that
 * calls and rooms that need a relay need no setting. Production needs a separate TURN server.
 *
 * A relay reaches only relays of this server, since the library itself refuses no private peers.
 * Players reach it over UDP: over TCP the library frames the data of relays wrongly, without padding.
 */
import { isIP } from "node:net"
import { networkInterfaces } from "node:os"
import { Effect, type Scope } from "effect"
import { createServer } from "turn-server"
import { TurnUnavailable } from "#rpc/errors/codes"

/** Allocations of the embedded server: of one player, and of all. */
const embeddedUserQuota = 16
const embeddedTotalQuota = 200

const loopback = "127.0.0.1"

/** Returns the address at which other machines in the network reach this machine. */
const networkAddress = (): string => {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  const outer = addresses.find(({ family, internal }) => family === "IPv4" && !internal)
  return outer?.address ?? loopback
}

/** Returns an IPv4 address in its plain form; undefined for any other, which no relay reaches. */
const plainIPv4 = (address: unknown): string | undefined => {
  if (typeof address !== "string") return undefined
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, "")
  return isIP(plain) === 4 ? plain : undefined
}

interface PeerRequest {
  readonly peer?: { readonly ip?: unknown }
}

/** Starts the server and returns the address of its relays. The server stops with the scope. */
export const startEmbeddedTurn = (options: {
  readonly port: number
  readonly secret: string
}): Effect.Effect<string, TurnUnavailable, Scope.Scope> => {
  const { port, secret } = options
  const address = networkAddress()
  const decide = ({ peer }: PeerRequest, grant: (granted: boolean) => void) =>
    grant(plainIPv4(peer?.ip) === address)
  const start = Effect.callback<ReturnType<typeof createServer>, TurnUnavailable>((resume) => {
    const server = createServer({
      auth: { mechanism: "long-term", realm: "player-backend", secret },
      relay: { ip: address, externalIp: address },
      allowLoopback: address === loopback,
      userQuota: embeddedUserQuota,
      totalQuota: embeddedTotalQuota
    })
    server.on("beforePermission", decide)
    server.on("beforeChannelBind", decide)
    server.on("error", () => resume(Effect.fail(new TurnUnavailable())))
    server.on("listening", () => resume(Effect.succeed(server)))
    server.listen([{ port, transport: "udp" }])
  })
  const held = Effect.acquireRelease(start, (server) => Effect.sync(() => server.stop()))
  return Effect.as(held, address)
}
