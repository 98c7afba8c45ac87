/** A TURN client: allocates relays and asks them for peers. */
import { isIPv6 } from "node:net"
import { Effect } from "effect"
import { connect, type Socket } from "turn-server"

export interface Credentials {
  readonly username: string
  readonly credential: string
}

interface Allocation {
  readonly family?: 4 | 6
  /** What the relay carries. */
  readonly relayed?: "udp" | "tcp"
  /** Seconds that the client asks for. */
  readonly lifetime?: number
}

/** A response, and the attribute of the lifetime in one to an allocation. */
interface Response {
  readonly getAttribute: (type: number) => unknown
}
const lifetimeAttribute = 0x000d

/** Protocol numbers of REQUESTED-TRANSPORT, and families of REQUESTED-ADDRESS-FAMILY. */
const protocols = { udp: 17, tcp: 6 } as const
const families = { 4: 1, 6: 2 } as const

const firstChannel = 0x4000
const discardPort = 9

/** Sends a request; returns `granted` or the code of the error response. */
const ask = (client: Socket, send: () => void) =>
  Effect.callback<number | "granted">((resume) => {
    const settle = (outcome: Effect.Effect<number | "granted">) => {
      for (const [event, listener] of listeners) client.off(event, listener)
      resume(outcome)
    }
    const listeners = [
      ["success", () => settle(Effect.succeed("granted"))],
      [
        "error_response",
        (_: unknown, error: { readonly code: number }) => settle(Effect.succeed(error.code))
      ],
      ["timeout", () => settle(Effect.die(new Error("The TURN server does not reply")))]
    ] as const
    for (const [event, listener] of listeners) client.on(event, listener)
    send()
  })

const open = (port: number, { credential, username }: Credentials, transport: "udp" | "tcp") =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const uri = `turn:127.0.0.1:${port}?transport=${transport}`
      connect(uri, { username, password: credential, autoRefresh: false }, (_, client) => {
        // The server may reset the connection of a refused client.
        client.on("error", () => undefined)
        resume(Effect.succeed(client))
      })
    }),
    (client) => Effect.sync(() => client.close())
  )

/** Ends an allocation. The package types the lifetime as an object but reads a number. */
const release = (client: Socket) =>
  ask(client, () => void Reflect.apply(client.refresh, client, [0]))

/** "Allocation mismatch": the client's port is still that of an allocation which coturn is ending. */
const allocationMismatch = 437

/** Allocates a relay until the scope closes. */
export const allocate = Effect.fnUntraced(
  function* (
    port: number,
    credentials: Credentials,
    { family = 4, lifetime, relayed = "udp" }: Allocation
  ) {
    const client = yield* open(port, credentials, relayed)
    let granted = 0
    client.on("success", (response: Response) => {
      granted = Number(response.getAttribute(lifetimeAttribute))
    })
    const outcome = yield* ask(client, () =>
      client.allocate({
        transport: protocols[relayed],
        ...(lifetime === undefined ? {} : { lifetime }),
        ...(family === 4 ? {} : { requestedAddressFamily: families[family] })
      })
    )
    if (outcome !== "granted") return { refused: outcome }
    yield* Effect.addFinalizer(() => release(client))
    return { client, lifetime: granted }
  },
  Effect.repeat({
    until: (relay) => !("refused" in relay) || relay.refused !== allocationMismatch
  })
)

/** Asks a relay for a peer; returns `granted` or the code of the refusal. */
export const grantPeer = (client: Socket, ip: string, by: "permission" | "channel") => {
  const peer = { ip, port: discardPort, family: families[isIPv6(ip) ? 6 : 4] }
  return ask(client, () =>
    by === "permission" ? client.createPermission(peer) : client.channelBind(firstChannel, peer)
  )
}
