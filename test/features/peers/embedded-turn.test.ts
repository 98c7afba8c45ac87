/** The embedded TURN server: who gets a relay, and what a relay reaches. */
import { networkInterfaces } from "node:os"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestApp } from "#testing/app"
import { at } from "#testing/players"
import { DatabaseLive } from "../../support/service.ts"
import { allocate, grantPeer } from "../../support/turn-client.ts"
import { enableVoice, joinCall, newMember, voiceChannel } from "../../support/voice-calls.ts"
import { freeUdpPort } from "../../support/udp-port.ts"

const EmbeddedLive = Layer.unwrap(
  Effect.map(freeUdpPort, (port) => TestApp.layerWith({ SVC_TURN_PORT: String(port) }))
).pipe(Layer.provide(DatabaseLive))

const own = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ family, internal }) => family === "IPv4" && !internal)?.address

const foreign = [
  "0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.168.0.1 198.18.0.1 224.0.0.1",
  "240.0.0.1 255.255.255.255 9.9.9.9 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1",
  "64:ff9b::a00:1 2002:a00:1:: fc00::1 fe80::1 ff02::1 2606:4700::1111"
]
  .join(" ")
  .split(" ")

const live = { timeout: "120 seconds", excludeTestServices: true } as const

layer(EmbeddedLive, live)("the embedded TURN server", (it) => {
  it.effect("relays between players, and reaches no address but that of its relays", () =>
    Effect.gen(function* () {
      const app = yield* TestApp
      yield* enableVoice(app)
      const channel = yield* voiceChannel(app, { voice: true, maxMembers: 8 })
      const joined = yield* joinCall(yield* newMember(app, channel), channel)
      const server = at(joined, "iceServers", 0)
      const url = String(at(server, "urls", 0))
      assert.match(url, new RegExp(`^turn:${own ?? "127.0.0.1"}:\\d+$`))
      const port = Number(url.split(":").at(-1))
      const [username, credential] = [
        String(at(server, "username")),
        String(at(server, "credential"))
      ]
      const relay = yield* allocate(port, { username, credential }, {})
      if ("refused" in relay) return assert.fail(`no relay: ${relay.refused}`)
      const granted: Array<string> = []
      for (const peer of foreign) {
        const outcome = yield* grantPeer(relay.client, peer, "permission")
        if (outcome === "granted") granted.push(peer)
      }
      for (const peer of ["127.0.0.1", "::ffff:127.0.0.1", "169.254.169.254"]) {
        const other = yield* allocate(port, { username, credential }, {})
        if ("refused" in other) return assert.fail(`no relay: ${other.refused}`)
        const outcome = yield* grantPeer(other.client, peer, "channel")
        if (outcome === "granted") granted.push(`${peer} by channel`)
      }
      assert.deepStrictEqual(granted, [])
      const self = own ?? "127.0.0.1"
      assert.strictEqual(yield* grantPeer(relay.client, self, "permission"), "granted")
      const forged = yield* allocate(port, { username, credential: "x" }, {})
      assert.deepStrictEqual(forged, { refused: 401 })
    })
  )
})
