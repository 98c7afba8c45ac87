/**
 * Attacks on TURN relays: wrong credentials and internal peers. coturn runs the shipped
 * configuration; without coturn, the embedded server applies the peers that it denies.
 */
import { isIPv6 } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Clock, ConfigProvider, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { credentialSeconds, TurnServers } from "#server/features/peers/turn-servers"
import { Settings } from "#server/platform/settings/settings"
import { allocate, type Credentials, grantPeer } from "../support/turn-client.ts"
import {
  hasCoturn,
  hasIPv6,
  ownRelayAddress,
  TurnServer,
  turnSecret
} from "../support/turn-server.ts"

const ServersLive = Layer.unwrap(
  Effect.map(TurnServer, ({ port }) =>
    TurnServers.layer.pipe(
      Layer.provide(Settings.layer),
      Layer.provide(
        ConfigProvider.layer(
          ConfigProvider.fromEnv({
            env: { SVC_TURN_URLS: `turn:127.0.0.1:${port}`, SVC_TURN_SECRET: turnSecret }
          })
        )
      )
    )
  )
)

const RelaysLive = ServersLive.pipe(Layer.provideMerge(TurnServer.layerShipped))
const OwnRelayLive = ServersLive.pipe(Layer.provideMerge(TurnServer.layerRelayOnly))

/** The credentials that the service issued to a player `secondsAgo`. */
const issue = Effect.fnUntraced(function* (player: string, secondsAgo = 0) {
  const turnServers = yield* TurnServers
  const now = yield* TestClock.withLive(Clock.currentTimeMillis)
  yield* TestClock.setTime(now - secondsAgo * 1000)
  const { iceServers } = yield* turnServers.serversFor(player, "relay")
  const { credential = "", username = "" } = iceServers[0] ?? {}
  return { username, credential }
})

/** Allocates a relay and asks it for a peer; returns `granted` or the code of the refusal. */
const relayTo = Effect.fnUntraced(function* (
  peer: string,
  credentials: Credentials,
  by: "permission" | "channel" = "permission"
) {
  const { port } = yield* TurnServer
  // coturn relays to peers of the relay's own family; the embedded server to either.
  const family = hasCoturn && isIPv6(peer) ? 6 : 4
  const relay = yield* allocate(port, credentials, { family })
  return "refused" in relay ? relay.refused : yield* grantPeer(relay.client, peer, by)
}, Effect.scoped)

/** Loopback, private, link-local, cloud metadata and reserved addresses, also embedded in IPv6. */
const internal = [
  "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.254 127.0.0.1 127.8.8.8",
  "169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.168.0.1",
  "192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1",
  "255.255.255.255",
  ":: ::1 ::2 ::127.0.0.1 ::10.0.0.1 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254",
  "::10.0.1.0 ::ffff:10.0.1.0 ::ffff:10.0.0.0 ::ffff:169.254.0.0",
  "64:ff9b::a00:1 64:ff9b::a00:100 64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001:0:a00:1:: 2001:db8::1 2002:a00:1::",
  "2002:7f00:1:: 2002:c0a8:1:: fc00::1 fd12:3456::1 fe80::1 febf::1 ff02::1"
]
  .join(" ")
  .split(" ")
const usable = internal.filter((peer) => hasIPv6 || !isIPv6(peer))

const needsCoturn = hasCoturn ? "" : " (skipped: coturn is not installed)"

layer(RelaysLive, { timeout: "30 seconds" })("a TURN relay", (it) => {
  it.effect("relays over TURN to public peers and to none of 40 internal addresses", () =>
    Effect.gen(function* () {
      const wrong: Array<string> = []
      const publicPeers = ["9.9.9.9", ...(hasIPv6 ? ["2606:4700::1111"] : [])]
      for (const [index, peer] of publicPeers.entries()) {
        for (const by of ["permission", "channel"] as const) {
          const outcome = yield* relayTo(peer, yield* issue(`env.public${index}`), by)
          assert.strictEqual(outcome, "granted", `${peer} by ${by}`)
        }
      }
      for (const [index, peer] of usable.entries()) {
        for (const by of ["permission", "channel"] as const) {
          const outcome = yield* relayTo(peer, yield* issue(`env.p${index}`), by)
          if (outcome !== 403) wrong.push(`${peer} by ${by}: ${outcome}`)
        }
      }
      assert.isAtLeast(internal.length, 40)
      assert.deepStrictEqual(wrong, [])
    })
  )

  it.effect("refuses forged and expired TURN credentials", () =>
    Effect.gen(function* () {
      const good = yield* issue("env.ann")
      const other = yield* issue("env.ben")
      const cases: ReadonlyArray<readonly [string, Credentials]> = [
        ["the password of another player", { ...good, credential: other.credential }],
        ["a wrong password", { ...good, credential: "x" }],
        ["a later expiry", { ...good, username: good.username.replace(/^\d/, "9") }],
        ["no expiry", { ...good, username: "env.ann" }],
        ["expired five seconds ago", yield* issue("env.ann", credentialSeconds + 5)]
      ]
      for (const [name, credentials] of cases) {
        assert.strictEqual(yield* relayTo("9.9.9.9", credentials), 401, name)
      }
      const almost = yield* issue("env.ann", credentialSeconds - 30)
      assert.strictEqual(yield* relayTo("9.9.9.9", almost), "granted")
    })
  )

  it.effect.skipIf(!hasCoturn)(`allocates no TCP relay${needsCoturn}`, () =>
    Effect.gen(function* () {
      const { port } = yield* TurnServer
      const credentials = yield* issue("env.tcp")
      const relay = yield* allocate(port, credentials, { relayed: "tcp" })
      assert.deepStrictEqual(relay, { refused: 442 })
    })
  )

  it.effect.skipIf(!hasCoturn)(
    `gives a player 16 allocations over all its credentials${needsCoturn}`,
    () =>
      Effect.gen(function* () {
        const { port } = yield* TurnServer
        const credentials = yield* issue("env.many")
        for (let count = 1; count <= 16; count++) {
          assert.notProperty(yield* allocate(port, credentials, {}), "refused", `${count}`)
        }
        assert.deepStrictEqual(yield* allocate(port, credentials, {}), { refused: 486 })
        assert.strictEqual(yield* relayTo("9.9.9.9", yield* issue("env.many", 60)), 486)
        assert.strictEqual(yield* relayTo("9.9.9.9", yield* issue("env.another")), "granted")
      })
  )
})

layer(OwnRelayLive, { timeout: "30 seconds" })("a TURN relay for relay-only modes", (it) => {
  it.effect("relays in relay-only modes to the TURN server's own address and to no other one", () =>
    Effect.gen(function* () {
      const foreign = ["9.9.9.8", "8.8.8.8", "1.0.0.1", "223.255.255.254", "10.0.0.1"]
      const foreignV6 = hasIPv6 ? ["2606:4700::1111", "2a00::1", "fd00::1"] : []
      for (const [index, peer] of [...foreign, ...foreignV6].entries()) {
        const outcome = yield* relayTo(peer, yield* issue(`env.foreign${index}`))
        assert.strictEqual(outcome, 403, peer)
      }
      assert.strictEqual(yield* relayTo(ownRelayAddress, yield* issue("env.own")), "granted")
    })
  )

  it.effect.skipIf(!hasCoturn)(
    `ends a TURN relay ten minutes after its player is gone${needsCoturn}`,
    () =>
      Effect.gen(function* () {
        const { port } = yield* TurnServer
        const relay = yield* allocate(port, yield* issue("env.gone"), { lifetime: 3600 })
        assert.strictEqual("refused" in relay ? relay.refused : relay.lifetime, 600)
      })
  )
})
