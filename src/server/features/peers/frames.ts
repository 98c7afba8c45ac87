/**
 * Peer-to-peer rooms from a gateway's side (spec section 4.4, decisions 3.7.16): the STUN and TURN
 * servers that a player's own connections use. Credentials follow coturn's REST form: the user name
 * ends with a time, and the password proves that whoever holds the shared secret has issued it.
 */
import { createHmac } from "node:crypto"
import { Clock, Context, DateTime, Effect, Layer, Redacted } from "effect"
import { NotInRoom, TurnUnavailable } from "#rpc/errors/codes"
import { turn } from "#rpc/limits"
import type { IceServer, IceServers, IceTransportPolicy } from "#rpc/peers"
import { Settings } from "#server/platform/settings/settings"
import type { PlayerConnection } from "#server/links/player-connection"
import { askRoom } from "../rooms/frames.ts"

const isTurn = (url: string): boolean => /^turns?:/i.test(url)

/** The user name and password for a TURN server that shares the secret. */
const credentialsFor = (player: string, secret: string, expiresAt: number) => {
  const username = `${Math.floor(expiresAt / 1000)}:${player}`
  return { username, credential: createHmac("sha1", secret).update(username).digest("base64") }
}

/** The deployment's STUN and TURN servers. */
export class TurnServers extends Context.Service<
  TurnServers,
  {
    /** `player` names the credentials in the TURN server's log and quota. */
    readonly serversFor: (
      player: string,
      policy: IceTransportPolicy
    ) => Effect.Effect<IceServers, TurnUnavailable>
  }
>()("server/features/peers/frames/Relays") {
  static readonly layer = Layer.effect(
    TurnServers,
    Effect.map(Settings, ({ turn: configured }) => {
      const { secret, urls } = configured
      const stuns = urls.filter((url) => !isTurn(url))
      const turns = urls.filter(isTurn)
      return TurnServers.of({
        serversFor: Effect.fnUntraced(function* (player, iceTransportPolicy) {
          const relayed = iceTransportPolicy === "relay"
          if (relayed && turns.length === 0) return yield* new TurnUnavailable()
          const expiresAt = (yield* Clock.currentTimeMillis) + turn.credentialSeconds * 1000
          const servers: Array<IceServer> = []
          if (stuns.length > 0 && !relayed) servers.push({ urls: stuns })
          if (turns.length > 0 && secret !== undefined) {
            const credentials = credentialsFor(player, Redacted.value(secret), expiresAt)
            servers.push({ urls: turns, ...credentials })
          }
          return {
            iceServers: servers,
            iceTransportPolicy,
            expiresAt: DateTime.formatIso(DateTime.makeUnsafe(expiresAt))
          }
        })
      })
    })
  )
}

/** The servers for a player's connections in the room it is in. */
export const iceServersOf = Effect.fnUntraced(function* (connection: PlayerConnection) {
  const relays = yield* TurnServers
  const { environmentId, playerId, room } = connection
  if (room === undefined) return yield* new NotInRoom()
  const { iceTransportPolicy } = yield* askRoom(room, { t: "iceTransport", playerId })
  return yield* relays.serversFor(
    `${environmentId}.${playerId}`,
    iceTransportPolicy === "all" ? "all" : "relay"
  )
})
