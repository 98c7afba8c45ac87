/**
 * STUN and TURN servers of the deployment. Credentials follow coturn's REST form: the user name starts
 * with its expiry time, and the password is a MAC with the secret that the TURN server shares.
 */
import { createHmac } from "node:crypto"
import { Clock, Context, DateTime, Effect, Layer, Redacted } from "effect"
import { TurnUnavailable } from "#rpc/errors/codes"
import { turn } from "#rpc/limits"
import type { IceServer, IceServers, IceTransportPolicy } from "#rpc/peers"
import { Settings } from "#server/platform/settings/settings"

const isTurnUrl = (url: string): boolean => /^turns?:/i.test(url)

const credentialsFor = (player: string, secret: string, expiresAt: number) => {
  const username = `${Math.floor(expiresAt / 1000)}:${player}`
  return { username, credential: createHmac("sha1", secret).update(username).digest("base64") }
}

export class TurnServers extends Context.Service<
  TurnServers,
  {
    /** The servers for one player; `player` names its credentials in the TURN server's log and quota. */
    readonly serversFor: (
      player: string,
      policy: IceTransportPolicy,
      /** How long the credentials are valid; an hour by default. */
      seconds?: number
    ) => Effect.Effect<IceServers, TurnUnavailable>
  }
>()("server/features/peers/turn-servers/TurnServers") {
  static readonly layer = Layer.effect(
    TurnServers,
    Effect.map(Settings, ({ turn: { secret, urls } }) => {
      const stunUrls = urls.filter((url) => !isTurnUrl(url))
      const turnUrls = urls.filter(isTurnUrl)
      return TurnServers.of({
        serversFor: Effect.fnUntraced(function* (
          player,
          iceTransportPolicy,
          seconds = turn.credentialSeconds
        ) {
          const relayOnly = iceTransportPolicy === "relay"
          if (relayOnly && turnUrls.length === 0) return yield* new TurnUnavailable()
          const expiresAt = (yield* Clock.currentTimeMillis) + seconds * 1000
          const servers: Array<IceServer> = []
          if (stunUrls.length > 0 && !relayOnly) servers.push({ urls: stunUrls })
          if (turnUrls.length > 0 && secret !== undefined) {
            const credentials = credentialsFor(player, Redacted.value(secret), expiresAt)
            servers.push({ urls: turnUrls, ...credentials })
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
