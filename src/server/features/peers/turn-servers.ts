/**
 * STUN and TURN servers of the deployment. Credentials follow coturn's REST form. The user name starts
 * with its expiry time. The password is a MAC with the secret that the TURN server shares.
 */
import { createHmac } from "node:crypto"
import { Clock, Context, DateTime, Effect, Layer, Redacted, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { Base64 } from "effect/encoding"
import { TurnUnavailable } from "#rpc/errors/codes"
import type { IceServer, IceServers, IceTransportPolicy } from "#rpc/peers"
import { secondsPerHour } from "#rpc/units"
import { Settings } from "#server/platform/settings/settings"
import { startEmbeddedTurn } from "./embedded-turn.ts"

export const credentialSeconds = secondsPerHour

const isTurnUrl = (url: string): boolean => /^turns?:/i.test(url)

/** Returns credentials of a player for a TURN server until a time, in milliseconds. */
export const credentialsFor = (player: string, secret: string, expiresAt: number) => {
  const username = `${Math.floor(expiresAt / 1000)}:${player}`
  return { username, credential: createHmac("sha1", secret).update(username).digest("base64") }
}

/** TURN server and its shared secret. */
interface Relay {
  readonly urls: ReadonlyArray<string>
  readonly secret: string
}

const secretBytes = 32

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/** Starts the embedded server of a service with this host name; it stops with the scope. */
export const startRelay = Effect.fnUntraced(function* (port: number, hostname: string) {
  const random = yield* SecureRandom.SecureRandom
  const secret = Base64.encode(yield* random.randomBytes(secretBytes))
  const address = yield* startEmbeddedTurn({ port, secret })
  // A page that may use the microphone gathers no relay over UDP from a loopback address.
  const host = loopbackHosts.has(hostname) ? address : hostname
  const relay: Relay = { urls: [`turn:${host}:${port}`], secret }
  return relay
}, Effect.provide(SecureRandom.layerWebCrypto))

/**
 * Embedded server of a development machine. The first use starts it; undefined in other deployments.
 */
const makeEmbedded = Effect.fnUntraced(function* ({
  baseUrl,
  production,
  runner,
  turn: { port, urls }
}: Settings["Service"]) {
  if (production || runner !== undefined || urls.length > 0 || port === 0) {
    return Effect.succeed(undefined)
  }
  const scope = yield* Effect.scope
  const start = Scope.provide(startRelay(port, new URL(baseUrl).hostname), scope).pipe(
    Effect.catchCause((cause) =>
      Effect.as(
        Effect.logWarning(
          `Failed to start the embedded TURN server on port ${port}: choose another SVC_TURN_PORT`,
          cause
        ),
        undefined
      )
    )
  )
  return yield* Effect.cached(start)
})

export class TurnServers extends Context.Service<
  TurnServers,
  {
    /**
     * Returns the servers for one player; `player` names its credentials in the TURN server's log and
     * quota.
     */
    readonly serversFor: (
      player: string,
      policy: IceTransportPolicy,
      /** Lifetime of the credentials in seconds; an hour by default. */
      seconds?: number
    ) => Effect.Effect<IceServers, TurnUnavailable>
  }
>()("server/features/peers/turn-servers/TurnServers") {
  static readonly layer = Layer.effect(
    TurnServers,
    Effect.gen(function* () {
      const settings = yield* Settings
      const { secret, urls } = settings.turn
      const stunUrls = urls.filter((url) => !isTurnUrl(url))
      const turnUrls = urls.filter(isTurnUrl)
      const configured: Relay | undefined =
        turnUrls.length === 0 || secret === undefined
          ? undefined
          : { urls: turnUrls, secret: Redacted.value(secret) }
      const embedded = yield* makeEmbedded(settings)
      return TurnServers.of({
        serversFor: Effect.fnUntraced(function* (
          player,
          iceTransportPolicy,
          seconds = credentialSeconds
        ) {
          const relay = configured ?? (yield* embedded)
          const relayOnly = iceTransportPolicy === "relay"
          if (relayOnly && relay === undefined) return yield* new TurnUnavailable()
          const expiresAt = (yield* Clock.currentTimeMillis) + seconds * 1000
          const servers: Array<IceServer> = []
          if (stunUrls.length > 0 && !relayOnly) servers.push({ urls: stunUrls })
          if (relay !== undefined) {
            const credentials = credentialsFor(player, relay.secret, expiresAt)
            servers.push({ urls: relay.urls, ...credentials })
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
